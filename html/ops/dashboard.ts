import type { Day, Event, Summary } from '../../db/ops/rows.ts'
import type { Session } from '../../db/ops/sessions.ts'
import { html, type Html } from '../../kernel/html.ts'
import { timeTag } from '../text.ts'
import { eventTable } from './event-table.ts'
import { opsPage } from './layout.ts'
import { costText, shortText, statusBadge } from './parts.ts'
import { sparkLine } from './spark.ts'
import { triggerForm, type TriggerView } from './trigger.ts'

/** What goes on now. */
export interface NowView {
  readonly running: Session | undefined
  /** The session that began last. */
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
  /** Days without anything have no row. */
  readonly days: readonly Day[]
  /** The days of the spark lines, oldest first. */
  readonly dayNames: readonly string[]
  readonly trigger: TriggerView
}

export function dashboardPage(view: DashboardView): Html {
  return opsPage({
    title: 'Dashboard',
    section: 'dashboard',
    body: html`<h1 class="hidden">Dashboard</h1>
      ${nowFragment(view.now)}
      <section aria-labelledby="days-title">
        <h2 id="days-title" class="hidden">Last days</h2>
        <div class="tiles">${sparkLines(view)}</div>
      </section>
      ${triggerForm(view.trigger)} ${feedFragment(view)}`,
  })
}

/** What goes on now; the page asks for it again while it is open. */
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
    ${
      summary !== undefined &&
      html`<section class="panel" aria-labelledby="summary-title">
        <div class="title-line">
          <h2 id="summary-title">Last summary</h2>
          <a href="/sessions/${summary.id}">Session ${summary.id}</a>
        </div>
        <p class="summary">${shortText(summary.summary, 2_000)}</p>
        <p class="muted">${timeTag(summary.ended_at)}</p>
      </section>`
    }
  </section>`
}

function intervalText(seconds: number): string {
  return seconds % 60 === 0 ? `${seconds / 60} min` : `${seconds} s`
}

function feedFragment({ events }: DashboardView): Html {
  return html`<section id="feed" aria-labelledby="feed-title">
    <div class="title-line">
      <h2 id="feed-title">Events</h2>
      <a href="/events">All events</a>
    </div>
    ${
      events.length === 0
        ? html`<p class="panel empty">Nothing was noted yet.</p>`
        : eventTable('feed-rows', 'Newest events', events)
    }
  </section>`
}

function sparkLines({ days, dayNames }: DashboardView): readonly Html[] {
  const values = (name: 'sessions' | 'cost_usd' | 'events') =>
    dayNames.map((day) => ({ day, value: days.find((row) => row.day === day)?.[name] ?? 0 }))
  return [
    sparkLine('Sessions', values('sessions'), String),
    sparkLine('Cost', values('cost_usd'), costText),
    sparkLine('Events', values('events'), String),
  ]
}
