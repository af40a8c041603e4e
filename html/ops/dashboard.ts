import type { Day, Summary, Session } from '../../db/ops/sessions.ts'
import type { Event } from '../../db/ops/events.ts'
import { html, type Html } from '../../kernel/html.ts'
import type { FormState } from '../../kernel/http/view.ts'
import { barChart } from '../chart.ts'
import { field, postForm, refusal, select, submit } from '../form.ts'
import { emptyState, saved, timeTag } from '../parts.ts'
import { eventTable } from './events.ts'
import { opsPage, costText, shortText, statusBadge } from './layout.ts'

/** The current state. */
export interface NowView {
  readonly running: Session | undefined
  /** The newest session. */
  readonly last: Session | undefined
  readonly summary: Summary | undefined
  readonly dryRun: boolean
  /** Seconds between scheduled sessions. */
  readonly interval: number
}

/** What `/` shows. */
export interface DashboardView {
  readonly now: NowView
  readonly events: readonly Event[]
  /** A day without any has no row. */
  readonly days: readonly Day[]
  /** The days of the charts, oldest first. */
  readonly dayNames: readonly string[]
  readonly trigger: TriggerView
}

/** The form that starts a session. */
export interface TriggerView {
  readonly form: FormState
  /** The session that was just started. */
  readonly started?: number
}

const TIERS = [
  ['auto', 'auto (begin at tier 1)'],
  ['1', '1 – observe'],
  ['2', '2 – investigate'],
  ['3', '3 – remediate'],
] as const

export function dashboardPage(view: DashboardView): Html {
  return opsPage({
    title: 'Dashboard',
    section: 'dashboard',
    body: html`<h1 class="hidden">Dashboard</h1>
      ${nowFragment(view.now)}
      <section aria-labelledby="days-title">
        <h2 id="days-title" class="hidden">Last days</h2>
        <div class="tiles">
          ${dayTile(view, 'Sessions', 'sessions', String)}
          ${dayTile(view, 'Cost', 'cost_usd', costText)}
          ${dayTile(view, 'Events', 'events', String)}
        </div>
      </section>
      ${triggerForm(view.trigger)} ${newestEvents(view.events)}`,
  })
}

/** The current state; an open page polls it. */
export function nowFragment({ running, last, summary, dryRun, interval }: NowView): Html {
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
      ${
        running !== undefined
          ? html`<p>
              <a href="/sessions/${running.id}">Session ${running.id}</a>, tier ${running.tier},
              since ${timeTag(running.started_at)}
            </p>`
          : last !== undefined &&
            html`<p>
              Last:
              <a href="/sessions/${last.id}">session ${last.id}</a> ${statusBadge(last.status)}
            </p>`
      }
      <p class="muted">one every ${intervalText(interval)}</p>
      ${dryRun && html`<p><span class="badge open">dry run</span></p>`}
    </div>
    ${summary !== undefined && summaryPanel(summary)}
  </section>`
}

/** The form alone: the reply to `POST /sessions/trigger`. */
export function triggerForm({ form: state, started }: TriggerView): Html {
  const form = { id: 'trigger', ...state }
  return postForm(
    {
      ...{ id: 'trigger', class: 'panel', 'aria-labelledby': 'trigger-title' },
      ...{ action: '/sessions/trigger', target: '#trigger' },
    },
    html`${refusal(form)}
      ${
        started !== undefined &&
        saved(html`<a href="/sessions/${started}" autofocus>Session ${started}</a> has begun.`)
      }
      <h2 id="trigger-title">Start a session</h2>
      ${field(form, 'prompt', 'What to look into', { rows: 3 })}
      ${select(form, 'tier', 'Tier', TIERS)}
      <p class="field">${submit('Start session', { class: 'primary', id: 'trigger-button' })}</p>`,
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
    ${
      events.length === 0
        ? emptyState('No events yet.')
        : eventTable('feed-rows', 'Newest events', events)
    }
  </section>`
}

/** A figure of the last days as bars, the last one being today. */
function dayTile(
  { days, dayNames }: DashboardView,
  title: string,
  figure: 'sessions' | 'cost_usd' | 'events',
  text: (value: number) => string,
): Html {
  const values = dayNames.map((name) => days.find(({ day }) => day === name)?.[figure] ?? 0)
  const total = values.reduce((sum, value) => sum + value, 0)
  const peak = Math.max(...values)
  const [span, peakDay] = [`${values.length} days`, dayNames[values.indexOf(peak)]]
  const label =
    total === 0
      ? `${title}: none in ${span}`
      : `${title} by day: ${text(total)} in ${span}, at most ${text(peak)} on ${peakDay}`
  const bars = values.map((value, at) => {
    return { label: dayNames[at] ?? '', parts: [{ kind: 'some', value }] }
  })
  return html`<article class="tile">
    <h3>${title}</h3>
    <p class="figure"><strong>${text(total)}</strong> in ${span}</p>
    ${barChart(label, bars, { text })}
    <p class="muted">Today ${text(values.at(-1) ?? 0)}</p>
  </article>`
}
