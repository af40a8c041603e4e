import type { RejectionCount } from '../../db/hooks/rejections.ts'
import type { HourStats } from '../../db/hooks/stats.ts'
import { html, type Html } from '../../kernel/html.ts'
import type { Page } from '../../kernel/http/view.ts'
import type { EventRow } from '../../services/hooks/previews.ts'
import type { StatusMessage } from '../../services/hooks/status.ts'
import { breakable, timeTag, copyBox } from '../parts.ts'
import { barChart } from '../chart.ts'
import { alarmBadges, trustBadge } from './layout.ts'
import { eventTable } from './event-row.ts'
import { logUrl } from './log-filter.ts'

/** What `/` shows. */
export interface DashboardView {
  baseUrl: string
  /** How the operator calls this program. */
  program: string
  /** Where the live stream goes on: no event after it need be on the page. */
  position: number
  status: StatusMessage
  /** The newest events, newest first. */
  events: readonly EventRow[]
  /** Of the last 24 hours; hours without events and rejections are left out. */
  stats: readonly HourStats[]
  rejections: readonly RejectionCount[]
}

/** To so many rows the list of the newest events grows. */
const MAX_RECENT = 20

type ProviderLine = StatusMessage['providers'][number]

/** `/`: whether anything arrives, from whom, and the newest events; kept live by the script. */
export function dashboardPage(view: DashboardView): Page {
  const empty = view.events.length === 0
  return {
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
      <section
        id="recent"
        class="rows"
        aria-labelledby="recent-title"
        data-newest="${logUrl({ limit: MAX_RECENT })}"
        data-position="${view.position}"
        data-max="${MAX_RECENT}"
        ${empty && html`hidden`}
      >
        <div class="title-line">
          <h2 id="recent-title">Recent events</h2>
          <a href="/log">All events</a>
        </div>
        ${eventTable('recent-rows', 'Recent events, newest first', view.events)}
      </section>
    </div>`,
  }
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
  const { name, enabled, last_event_at: last } = provider
  const rejected = view.rejections.find((one) => one.provider === name)
  const stats = view.stats.filter((one) => one.provider === name)
  return html`<article class="tile" data-provider="${name}">
    <h3><a href="${logUrl({ provider: name })}">${breakable(name)}</a></h3>
    <p class="badges">
      ${trustBadge(provider.trust_mode)}
      <span class="badge off" data-disabled ${enabled && html`hidden`}>disabled</span>
      ${alarmBadges(provider.alarms)}
    </p>
    <p class="figure"><strong data-recent-count>${provider.recent_count}</strong> in 24 hours</p>
    ${eventsChart(stats, view.status.generated_at)}
    <p class="muted">
      Last event
      <span data-last-event>${last === null ? 'never' : timeTag(last)}</span>
    </p>
    ${
      rejected &&
      html`<p class="rejected">
        <a href="${logUrl({ provider: name, rejected: '1' })}">${rejected.total} rejected</a>
      </p>`
    }
  </article>`
}

function firstWebhook({ baseUrl, program }: DashboardView): Html {
  const url = `${baseUrl}/webhooks/generic/first`
  return html`<section id="first-webhook" class="panel" aria-labelledby="first-title">
    <h2 id="first-title">Send the first webhook</h2>
    <p>Nothing was received yet. Create a provider and send to it with its token:</p>
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
 * Events per hour of one provider as 24 bars; the last one is the hour of `now`. Each chart has
 * its own scale, so its text says how many the highest bar stands for.
 */
function eventsChart(stats: readonly HourStats[], now: Date): Html {
  const hours = hourly(stats, now)
  const bars = hours.map(({ label, events }) => {
    return { label, parts: [{ kind: 'some', value: events }] }
  })
  return barChart(chartText(hours), bars)
}

interface Hour {
  label: string
  events: number
}

/** The 24 hours up to the hour of `now`, oldest first. */
export function hourly(stats: readonly HourStats[], now: Date): readonly Hour[] {
  const last = hourOf(now)
  return Array.from({ length: HOURS }, (_, at) => {
    const start = new Date((last - HOURS + 1 + at) * HOUR_MS)
    const line = stats.find(({ hour }) => hourOf(hour) === hourOf(start))
    return { label: `${start.toISOString().slice(11, 16)} UTC`, events: line?.events ?? 0 }
  })
}

function hourOf(time: Date): number {
  return Math.floor(time.getTime() / HOUR_MS)
}

function chartText(hours: readonly Hour[]) {
  const total = hours.reduce((sum, { events }) => sum + events, 0)
  if (total === 0) return 'No events in the last 24 hours'
  const peak = hours.reduce((most, hour) => (hour.events > most.events ? hour : most))
  const most = `at most ${peak.events} at ${peak.label}`
  return `Events per hour over 24 hours: ${total} in all, ${most}`
}
