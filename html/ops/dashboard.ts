import type { Day, Summary, Session } from '../../db/ops/sessions.ts'
import type { Event } from '../../db/ops/events.ts'
import { html, type Html } from '../../kernel/html.ts'
import type { FormState, Page } from '../../kernel/http/view.ts'
import type { Config } from '../../services/ops/config.ts'
import { barChart } from '../chart.ts'
import { field, postForm, refusal, select, submitLine } from '../form.ts'
import { saved, timeTag } from '../parts.ts'
import { eventTable } from './events.ts'
import { costText, sessionLink, shortText, statusBadge } from './layout.ts'

/** The current state. */
export interface NowView {
  running: Session | undefined
  /** The newest session. */
  last: Session | undefined
  summary: Summary | undefined
  config: Config
}

/** What `/` shows. */
export interface DashboardView {
  now: NowView
  events: readonly Event[]
  /** The days of the charts, oldest first. */
  days: readonly Day[]
  trigger: TriggerView
}

/** The form that starts a session. */
export interface TriggerView {
  form: FormState
  /** The session that was just started. */
  started?: number
}

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
      ${nowFragment(view.now)}
      <section aria-labelledby="days-title">
        <h2 id="days-title" class="hidden">Last days</h2>
        <div class="tiles">
          ${dayTile(view.days, 'Sessions', 'sessions', String)}
          ${dayTile(view.days, 'Cost', 'cost_usd', costText)}
          ${dayTile(view.days, 'Events', 'events', String)}
        </div>
      </section>
      ${triggerForm(view.trigger)} ${newestEvents(view.events)}`,
  }
}

/** The current state; an open page polls it. */
export function nowFragment(now: NowView): Html {
  const { running, summary, config } = now
  const state = running === undefined ? 'idle' : 'running'
  return html`<section
    id="now"
    aria-label="Now"
    hx-get="/"
    hx-trigger="every 10s"
    hx-swap="outerMorph"
    hx-target="this"
  >
    <div class="strip">
      <p class="connection" role="status" data-connection="${running ? 'receiving' : 'idle'}">
        <span class="dot" aria-hidden="true"></span>
        <span>${state}</span>
      </p>
      ${sessionLine(now)}
      <p class="muted">one every ${intervalText(config.interval)}</p>
      ${config.dry_run && html`<p><span class="badge open">dry run</span></p>`}
    </div>
    ${summary !== undefined && summaryPanel(summary)}
  </section>`
}

/** The session that runs; else the last one. */
function sessionLine({ running, last }: NowView): Html | undefined {
  if (running !== undefined) {
    const { id, tier, started_at } = running
    return html`<p>
      <a href="/sessions/${id}">Session ${id}</a>, tier ${tier}, since ${timeTag(started_at)}
    </p>`
  }
  return last && html`<p>Last: ${sessionLink(last.id)} ${statusBadge(last.status)}</p>`
}

/** The form alone: the reply to `POST /sessions/trigger`. */
export function triggerForm({ form: state, started }: TriggerView): Html {
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
        saved(html`<a href="/sessions/${started}" autofocus>Session ${started}</a> has begun.`)
      }
      <h2 id="trigger-title">Start a session</h2>
      ${field(form, 'prompt', 'What to look into', { rows: 3 })}
      ${select(form, 'tier', 'Tier', TIERS)} ${submitLine('Start session', 'trigger-button')}`,
  )
}

function summaryPanel({ id, summary, ended_at }: Summary): Html {
  return html`<section class="panel" aria-labelledby="summary-title">
    <div class="title-line">
      <h2 id="summary-title">Last summary</h2>
      <a href="/sessions/${id}">Session ${id}</a>
    </div>
    <p class="summary">${shortText(summary, 2_000)}</p>
    <p class="muted">${timeTag(ended_at)}</p>
  </section>`
}

function intervalText(seconds: number): string {
  return seconds % 60 === 0 ? `${seconds / 60} min` : `${seconds} s`
}

function newestEvents(events: readonly Event[]): Html {
  return html`<section id="feed" aria-labelledby="feed-title">
    <div class="title-line">
      <h2 id="feed-title">Events</h2>
      <a href="/events">All events</a>
    </div>
    ${eventTable('feed-rows', 'Newest events', events)}
  </section>`
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
  return html`<article class="tile">
    <h3>${title}</h3>
    <p class="figure"><strong>${text(total)}</strong> in ${span}</p>
    ${barChart(label, bars, { text })}
    <p class="muted">Today ${text(values.at(-1) ?? 0)}</p>
  </article>`
}
