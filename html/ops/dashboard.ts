import type { Day, Line, Session, Summary } from '../../db/ops/sessions.ts'
import type { Event } from '../../db/ops/events.ts'
import { html, type Html } from '../../kernel/html.ts'
import type { FormState, Page } from '../../kernel/http/view.ts'
import type { Health } from '../../services/ops/checks/health.ts'
import type { Config } from '../../services/ops/config.ts'
import type { Waits } from '../../services/ops/investigations/waiting.ts'
import type { Pause } from '../../services/ops/pause.ts'
import { barChart } from '../chart.ts'
import { markdown } from '../markdown.ts'
import { field, postForm, refusal, select, submitLine } from '../form.ts'
import { attributes, polled, saved, section, startHere, timeTag } from '../parts.ts'
import { checksFragment, healthLine, type ChecksView } from './checks.ts'
import { eventTable } from './events.ts'
import { waitsLine } from './investigations.ts'
import { costText, modelText, sessionLink, shortText, statusBadge } from './layout.ts'
import { askedLine } from './sessions/prompt.ts'
import { pausedOf, pausePanel } from './pause.ts'
import { waitingFragment, type WaitingView } from './waiting.ts'

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
  baseUrl: string
}

/** What `/` shows. */
export interface DashboardView {
  now: NowView
  waiting: WaitingView
  checks: ChecksView
  events: readonly Event[]
  /** The days of the charts, oldest first. */
  days: readonly Day[]
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
const MAX_SUMMARY = 2_000
/** Characters of a line of output; the session's page has the whole one. */
const MAX_LINE = 240

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
      ${nowFragment(view.now)} ${checksFragment(view.checks)} ${waitingFragment(view.waiting)}
      ${triggerForm(view.trigger)} ${pausePanel(view.now.pause)}
      <section aria-labelledby="days-title">
        <h2 id="days-title" class="hidden">Last days</h2>
        <div class="tiles">
          ${dayTile(view.days, 'Sessions', 'sessions', String)}
          ${dayTile(view.days, 'Cost', 'cost_usd', costText)}
          ${dayTile(view.days, 'Events', 'events', String)}
        </div>
      </section>
      ${newestEvents(view.events)}`,
  }
}

/** Whether all is well, and what runs; an open page polls it. */
export function nowFragment(now: NowView): Html {
  const { health, running, last, summary } = now
  const isFirst = last === undefined && health.state !== 'empty'
  const content = isFirst
    ? firstSession(now)
    : html`${activityLine(now)} ${running !== undefined && runningPanel(running, now.lines)}
      ${summary !== undefined && summaryPanel(summary)}`
  // Polled often, so that a session that begins is shown soon.
  const own = { id: 'now', 'aria-label': 'Now', ...(!isFirst && polled('/', 2, 'now')) }
  return html`<section${attributes(own)}>
    ${healthLine(health)} ${waitsLine(now.waits)} ${content}
  </section>`
}

function firstSession({ baseUrl }: NowView): Html {
  const body = `-H 'Content-Type: application/json' -d '{"prompt": "Check everything"}'`
  return startHere({
    title: 'Start the first session',
    text: 'A session runs the checks of every service. Use the form below, or this command:',
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

/** The form alone: the reply to `POST /sessions/trigger`. */
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
      ${
        started !== undefined &&
        saved(
          html`<a href="/sessions/${started}" autofocus>Session ${started}</a> has
            begun.${isPaused && ' Investigations are paused: it escalates to nobody.'}`,
        )
      }
      <h2 id="trigger-title">Start a session</h2>
      ${field(form, 'prompt', 'What to look into', { rows: 3 })}
      ${select(form, 'tier', 'Tier', TIERS.slice(0, maxTier + 1))}
      ${submitLine('Start session', 'trigger-button')}`,
  )
}

function summaryPanel({ id, summary, ended_at }: Summary): Html {
  const content = html`${markdown(summary.slice(0, MAX_SUMMARY).toWellFormed())}
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
      : `${title} by day: ${text(total)} in ${span}, at most ${text(peak)} on ${peakDay}`
  const bars = days.map((day) => ({
    label: day.day,
    parts: [{ kind: 'some', value: day[figure] }],
  }))
  return html`<article class="panel">
    <h3>${title}</h3>
    <p class="figure"><strong>${text(total)}</strong> in ${span}</p>
    ${barChart(label, bars, { text })}
    <p class="detail">Today ${text(values.at(-1) ?? 0)}</p>
  </article>`
}
