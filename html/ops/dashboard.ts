import type { Day, Line, Session, Summary, Sums } from '../../db/ops/agent/sessions.ts'
import type { Event } from '../../db/ops/events.ts'
import { html, type Html } from '../../kernel/html.ts'
import type { FormState, Page } from '../../kernel/http/view.ts'
import type { Health } from '../../services/ops/watch/checks/health.ts'
import type { Config } from '../../services/ops/config.ts'
import type { Waits } from '../../services/ops/alerts/investigations/waiting.ts'
import type { Pause } from '../../services/ops/agent/pause.ts'
import { barChart } from '../chart.ts'
import { markdown } from '../markdown.ts'
import { field, postForm, refusal, select, submitLine } from '../form.ts'
import { attributes, facts, polled, saved, section, startHere, timeTag } from '../parts.ts'
import { dayText } from '../times.ts'
import { healthLine } from './watch/checks.ts'
import { eventTable } from './events.ts'
import { waitsLine } from './alerts/investigations.ts'
import { costText, modelText, sessionLink, shortText, statusBadge } from './layout.ts'
import { pausedOf, pausePanel } from './agent/pause.ts'
import { firstService, servicesPanel, type ServicesView } from './watch/checks/overview.ts'
import { sumText } from './agent/sessions/list.ts'
import { askedLine } from './agent/sessions/prompt.ts'
import { waitingFragment, type WaitingView } from './alerts/waiting.ts'

/** The current state. */
export interface NowView {
  health: Health
  running: Session | undefined
  /** The last lines of the session that runs. */
  lines: readonly Line[]
  /** The newest session. */
  last: Session | undefined
  summary: Summary | undefined
  config: Config
  pause: Pause
  waits: readonly Waits[]
  services: ServicesView
  /** What sessions cost in some times. */
  spend: readonly { when: keyof typeof TIMES; sums: Sums }[]
  /** The time zone of the night and of today; empty for UTC. */
  zone: string
  /** The days of the charts in UTC, oldest first. */
  days: readonly Day[]
  baseUrl: string
}

/** What `/` shows. */
export interface DashboardView {
  now: NowView
  waiting: WaitingView
  events: readonly Event[]
  trigger: TriggerView
}

/** The form that starts a session. */
export interface TriggerView {
  form: FormState
  /** The highest tier that a session may have. */
  maxTier: number
  /** The session that was just started. */
  started?: number
  /** Whether nothing starts by itself. */
  isPaused: boolean
}

/** Characters of a summary; the session's page has the whole one. */
const MAX_SUMMARY = 600
/** Characters of a line of output; the session's page has the whole one. */
const MAX_LINE = 240

const TIMES = { night: 'Last night', today: 'Today', week: '7 days' } as const

/** Of the tiers after `auto`, those up to the highest one are offered. */
const TIERS = [
  ['auto', 'auto (begin at tier 1)'],
  ['1', '1 – observe'],
  ['2', '2 – investigate'],
  ['3', '3 – remediate'],
] as const

export function dashboardPage(view: DashboardView): Page {
  return {
    title: 'Dashboard',
    section: 'dashboard',
    body: html`<h1 class="hidden">Dashboard</h1>
      <div class="board">
        ${nowSection(view.now)}
        <div class="side">
          ${waitingFragment(view.waiting)} ${spendSection(view.now)} ${triggerForm(view.trigger)}
        </div>
      </div>
      ${newestEvents(view.events)} ${pausePanel(view.now.pause)}`,
  }
}

/** What an open page polls: the state of everything, and what was spent. */
export function nowFragment(now: NowView): Html {
  return html`${nowSection(now)} ${spendSection(now)}`
}

/** Whether all is well, what runs, and the services. */
function nowSection(now: NowView): Html {
  const { health, running, last, summary } = now
  const isEmpty = health.state === 'empty'
  const isFirst = last === undefined && !isEmpty
  // Before the first service and the first session, the panel of that step polls instead.
  const poll = !isEmpty &&
    !isFirst && {
      ...polled('/', 3, 'now'),
      'hx-select-oob': '#spend:outerMorph',
      'data-zoned': now.zone || 'UTC',
    }
  return html`<section${attributes({ id: 'now', 'aria-label': 'Now', ...poll })}>
    ${healthLine(health)} ${waitsLine(now.waits)} ${!isFirst && activityLine(now)}
    ${isFirst && firstSession(now)} ${isEmpty && firstService()}
    ${running !== undefined && runningPanel(running, now.lines)}
    ${!isEmpty && servicesPanel(now.services)} ${summary !== undefined && summaryPanel(summary)}
  </section>`
}

function firstSession({ baseUrl }: NowView): Html {
  const body = `-H 'Content-Type: application/json' -d '{"prompt": "Check everything"}'`
  return startHere({
    title: 'Start the first session',
    text: 'A session runs the checks of every service. Ask for one, or use this command:',
    command: `curl ${body} ${baseUrl}/api/v1/sessions/trigger`,
    path: '/',
    target: 'now',
  })
}

/** Whether a session runs, and when the next one comes. */
function activityLine({ running, last, config, pause }: NowView): Html {
  const state = running === undefined ? 'idle' : 'running'
  return html`<div class="strip">
    <p class="activity" role="status">${state}</p>
    ${
      running === undefined &&
      last !== undefined &&
      html`<p>
        Last: ${sessionLink(last.id)} ${statusBadge(last.status)}
        ${timeTag(last.ended_at ?? last.started_at)}
      </p>`
    }
    <p class="muted">one every ${intervalText(config.interval)}</p>
    ${pausedOf(pause).map((what) => html`<p><span class="badge bad">${what} paused</span></p>`)}
    ${config.dry_run && html`<p><span class="badge open">dry run</span></p>`}
  </div>`
}

/** The session that runs, with its last lines. */
function runningPanel(session: Session, lines: readonly Line[]): Html {
  const { id, tier, model, trigger, started_at, prompt_text } = session
  return html`<section class="panel" aria-labelledby="running-title">
    <div class="title-line">
      <h2 id="running-title"><a href="/sessions/${id}">Session ${id}</a></h2>
      <p class="muted">
        tier ${tier}, ${modelText(model)} · ${trigger} · started ${timeTag(started_at)}
      </p>
    </div>
    <p>${askedLine(prompt_text)}</p>
    <div class="output" id="last-lines" role="region" aria-label="Last lines" tabindex="0">
      ${lines.map(({ kind, text }) => {
        return html`<p class="line" data-kind="${kind}">
          <span class="said">${shortText(text, MAX_LINE)}</span>
        </p>`
      })}
      ${lines.length === 0 && html`<p class="muted">No output yet.</p>`}
    </div>
  </section>`
}

/** The form alone: the reply to `POST /sessions/trigger`. A browser opens the session. */
export function triggerForm({ form: state, maxTier, started, isPaused }: TriggerView): Html {
  const form = { id: 'trigger', ...state }
  return postForm(
    {
      id: 'trigger',
      class: 'panel',
      'aria-labelledby': 'trigger-title',
      action: '/sessions/trigger',
      target: '#trigger',
    },
    html`${refusal(form)}
      ${started !== undefined && saved(html`${sessionLink(started)} has begun.`)}
      <h2 id="trigger-title">Ask</h2>
      ${field(form, 'prompt', 'What to look into', { rows: 2 })}
      ${select(form, 'tier', 'Tier', TIERS.slice(0, maxTier + 1))}
      ${
        isPaused &&
        html`<p class="hint">Investigations are paused: the session escalates to nobody.</p>`
      }
      ${submitLine('Start session', 'trigger-button')}`,
  )
}

function summaryPanel({ id, summary, ended_at }: Summary): Html {
  const content = html`<div class="short">
      ${markdown(summary.slice(0, MAX_SUMMARY).toWellFormed())}
    </div>
    <p class="muted">${timeTag(ended_at)}</p>`
  const whole = html`<a href="/sessions/${id}">Session ${id}</a>`
  return section('summary-title', 'Last summary', content, { class: 'panel' }, whole)
}

function intervalText(seconds: number): string {
  return seconds % 60 === 0 ? `${seconds / 60} min` : `${seconds} s`
}

function newestEvents(events: readonly Event[]): Html {
  const table = eventTable('feed-rows', 'Newest events', events)
  const all = html`<a href="/events">All events</a>`
  return section('feed-title', 'Events', table, { id: 'feed' }, all)
}

/** What sessions cost: of the times that are asked for most, and day by day. */
function spendSection({ spend, days, zone }: NowView): Html {
  const times = spend.map(({ when, sums }) => {
    const query = String(new URLSearchParams({ when, ...(zone !== '' && { zone }) }))
    return [TIMES[when], html`<a href="/sessions?${query}">${sumText(sums)}</a>`] as const
  })
  const content = html`${facts(Object.fromEntries(times))}
    <div class="tiles">
      ${dayTile(days, 'Sessions', 'sessions', String)}
      ${dayTile(days, 'Cost', 'cost_usd', costText)} ${dayTile(days, 'Events', 'events', String)}
    </div>`
  const place = html`<p class="muted">${zone || 'UTC'}</p>`
  return section('spend-title', 'Spent', content, { id: 'spend', class: 'panel' }, place)
}

/** A figure of the last days as bars, the last one being today. */
function dayTile(
  days: readonly Day[],
  title: string,
  figure: 'sessions' | 'cost_usd' | 'events',
  text: (value: number) => string,
): Html {
  const values = days.map((day) => day[figure])
  const total = values.reduce((sum, value) => sum + value, 0)
  const peak = Math.max(...values)
  const span = `${values.length} days`
  const peakDay = days[values.indexOf(peak)]?.day
  const label =
    total === 0
      ? `${title}: none in ${span}`
      : `${title} by day: ${text(total)} in ${span}, at most ${text(peak)} on ${dayText(peakDay ?? '')}`
  const bars = days.map((day) => ({
    label: dayText(day.day),
    parts: [{ kind: 'some', value: day[figure] }],
  }))
  return html`<div>
    <p class="muted">${title} <strong>${text(total)}</strong></p>
    ${barChart(label, bars, { text })}
  </div>`
}
