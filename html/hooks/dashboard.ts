import type { EventSummary } from '../../db/hooks/events.ts'
import type { Activity } from '../../db/hooks/providers.ts'
import type { RejectionCount } from '../../db/hooks/rejections.ts'
import { html, type Html } from '../../kernel/html.ts'
import type { StatusMessage } from '../../services/hooks/status.ts'
import { breakable, timeTag, copyBox } from '../parts.ts'
import { barChart } from '../chart.ts'
import { hooksPage, alarmBadges, trustBadge } from './layout.ts'
import { eventRow, eventRowTemplate, eventTable } from './event-row.ts'
import { logUrl } from './log.ts'

/** What `/` shows. */
export interface DashboardView {
  readonly baseUrl: string
  /** How the operator calls this program. */
  readonly program: string
  /** Where the live stream goes on: no event after it need be on the page. */
  readonly position: number
  readonly status: StatusMessage
  /** The newest events, newest first. */
  readonly events: readonly EventSummary[]
  /** Events per provider and hour of the last 24 hours; hours without events are left out. */
  readonly activity: readonly Activity[]
  readonly rejections: readonly RejectionCount[]
}

type ProviderLine = DashboardView['status']['providers'][number]

/** `/`: whether anything arrives, from whom, and the newest events; kept live by the script. */
export function dashboardPage(view: DashboardView): Html {
  const empty = view.events.length === 0
  return hooksPage({
    title: 'Dashboard',
    section: 'dashboard',
    body: html`<div data-live="${view.position}">
      <h1 class="hidden">Dashboard</h1>
      ${connectionStrip(view)}
      <section aria-labelledby="providers-title">
        <h2 id="providers-title">Providers</h2>
        <div class="tiles">
          ${view.status.providers.map((provider) => providerTile(provider, view))}
        </div>
      </section>
      ${empty && firstWebhook(view)}
      <section id="recent" aria-labelledby="recent-title" ${empty && html`hidden`}>
        <div class="title-line">
          <h2 id="recent-title">Recent events</h2>
          <a href="/log">All events</a>
        </div>
        ${eventTable('recent-rows', 'Recent events, newest first', view.events.map(eventRow))}
        ${eventRowTemplate()}
      </section>
    </div>`,
  })
}

function connectionStrip({ status, baseUrl }: DashboardView): Html {
  return html`<div class="strip">
    <p class="connection" role="status" data-connection="${status.connection}">
      <span class="dot" aria-hidden="true"></span>
      <span data-connection-label>${status.connection}</span>
    </p>
    <p class="muted">at <code>${baseUrl}</code></p>
    <p class="trouble" data-trouble="db" ${status.db === 'ok' && html`hidden`}>
      Database out of reach
    </p>
    <p class="trouble" data-trouble="broker" ${status.broker !== 'error' && html`hidden`}>
      Broker out of reach
    </p>
  </div>`
}

function providerTile(provider: ProviderLine, view: DashboardView): Html {
  const { name, trust_mode, enabled, recent_count, last_event_at } = provider
  const rejected = view.rejections.find((total) => total.provider === name)
  return html`<article class="tile" data-provider="${name}">
    <h3><a href="${logUrl({ provider: name })}">${breakable(name)}</a></h3>
    <p class="badges">
      ${trustBadge(trust_mode)}
      <span class="badge off" data-disabled ${enabled && html`hidden`}>disabled</span>
      ${alarmBadges(provider.alarms)}
    </p>
    <p class="figure"><strong data-recent-count>${recent_count}</strong> in 24 hours</p>
    ${activityChart(name, view.activity, view.status.generated_at)}
    <p class="muted">
      Last event
      <span data-last-event>${last_event_at === null ? 'never' : timeTag(last_event_at)}</span>
    </p>
    ${rejected !== undefined && rejectedLine(rejected)}
  </article>`
}

function rejectedLine({ provider, total }: RejectionCount): Html {
  return html`<p class="rejected">
    <a href="${logUrl({ provider, rejected: true })}">${total} rejected</a>
  </p>`
}

function firstWebhook({ baseUrl, program }: DashboardView): Html {
  const url = `${baseUrl}/webhooks/generic/first`
  return html`<section id="first-webhook" class="panel" aria-labelledby="first-title">
    <h2 id="first-title">Send the first webhook</h2>
    <p>Nothing was received yet. Create a provider, which prints its token, and send to it:</p>
    ${copyBox(
      'first-command',
      'commands',
      `TOKEN=$(${program} provider add first --enable)\ncurl -X POST '${url}' \\\n` +
        `  -H "Authorization: Bearer $TOKEN" \\\n  -H 'Content-Type: application/json' \\\n` +
        `  -H 'X-Event-Type: greeting' \\\n  -d '{"hello": "world"}'`,
    )}
    <p>
      The event shows up here at once. Senders and their tokens can also be made on the
      <a href="/providers">providers page</a>; a sender that signs what it sends is enabled by its
      secret in the configuration.
    </p>
  </section>`
}

const HOUR_MS = 3_600_000
const HOURS = 24

/**
 * Events per hour of one provider as 24 bars; the last one is the hour of `now`. Each chart has its
 * own scale, so its text says how many the highest bar stands for.
 */
function activityChart(provider: string, activity: readonly Activity[], now: Date): Html {
  const counts = hourly(provider, activity, now)
  const first = Math.floor(now.getTime() / HOUR_MS) - (HOURS - 1)
  const bars = counts.map((value, at) => ({
    label: hourText(first + at),
    parts: [{ kind: 'some', value }],
  }))
  return barChart(chartText(counts, first), bars)
}

/** Events in each of the 24 hours up to the hour of `now`, oldest first. */
export function hourly(
  provider: string,
  activity: readonly Activity[],
  now: Date,
): readonly number[] {
  const counts = Array.from({ length: HOURS }, () => 0)
  const last = Math.floor(now.getTime() / HOUR_MS)
  for (const { provider: name, hour, events } of activity) {
    const index = HOURS - 1 - (last - Math.floor(hour.getTime() / HOUR_MS))
    // The window of 24 hours begins within a 25th one, which has no bar.
    if (name === provider && index >= 0 && index < HOURS) {
      counts[index] = (counts[index] ?? 0) + events
    }
  }
  return counts
}

function chartText(counts: readonly number[], first: number): string {
  const total = counts.reduce((sum, count) => sum + count, 0)
  if (total === 0) return 'No events in the last 24 hours'
  const peak = Math.max(...counts)
  const at = hourText(first + counts.indexOf(peak))
  return `Events per hour over 24 hours: ${total} in all, at most ${peak} at ${at}`
}

function hourText(hour: number): string {
  return `${new Date(hour * HOUR_MS).toISOString().slice(11, 16)} UTC`
}
