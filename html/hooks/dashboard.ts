import type { EventSummary } from '../../db/hooks/events.ts'
import type { Activity } from '../../db/hooks/providers.ts'
import type { RejectionCount } from '../../db/hooks/rejections.ts'
import { html, type Html } from '../../kernel/html.ts'
import type { StatusMessage } from '../../services/hooks/status.ts'
import { breakable, timeTag } from '../text.ts'
import { copyBox } from '../parts.ts'
import { hooksPage } from './layout.ts'
import { alarmBadges, trustBadge } from './badges.ts'
import { activityChart } from './chart.ts'
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
