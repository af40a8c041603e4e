import type { HourStats } from '../../db/hooks/log/stats.ts'
import { html, type Html } from '../../kernel/html.ts'
import type { Page, View } from '../../kernel/http/view.ts'
import type { EventRow } from '../../services/hooks/log/events/previews.ts'
import type { StatusMessage } from '../../services/hooks/log/status.ts'
import { barChart } from '../chart.ts'
import { rowFilter } from '../form.ts'
import { contentView } from '../layout.ts'
import {
  attributes,
  breakable,
  countText,
  disclosed,
  emptyState,
  followed,
  listTable,
  polled,
  rowLink,
  section,
  tableRow,
  timeTag,
} from '../parts.ts'
import { instantText } from '../times.ts'
import { alarmBadges, trustBadge } from './layout.ts'
import { eventTable } from './log/events/row.ts'
import { createUrlForm } from './first-delivery.ts'
import { headline, problemList, type ProblemsView } from './problems.ts'
import { logUrl } from './log-url.ts'

/** What `/status` shows. */
export interface StatusView extends ProblemsView {
  baseUrl: string
}

/** What `/` shows. */
export interface DashboardView extends StatusView {
  /** Where the live stream goes on: no event after it need be on the page. */
  position: number
  /** The newest events, newest first. */
  events: readonly EventRow[]
  /** Of the last 24 hours; hours without events and rejections are left out. */
  stats: readonly HourStats[]
  /** The provider in `stats` that stands for paths which lead to none. */
  unknown: string
}

/** The list of the newest events grows to this many rows. */
const MAX_RECENT = 20

type ProviderLine = StatusMessage['providers'][number]

/**
 * `/`: whether events arrive, how many, the newest ones, and their providers. The script keeps it
 * live. Before the first event it creates a URL to send one to.
 */
export function dashboardPage(view: DashboardView): Page {
  const { status, events, stats, position } = view
  const isNew = events.length === 0 && status.providers.every((one) => one.last_event_at === null)
  return {
    title: 'Dashboard',
    section: 'dashboard',
    script: 'hooks.js',
    body: html`<div id="home" data-stream="/events" data-last="${position}">
      <h1 class="hidden">Dashboard</h1>
      ${statusStrip(view)} ${isNew && firstWebhook(view)}
      ${(!isNew || stats.length > 0) && activity(view)} ${!isNew && recentEvents(view)}
      ${providers(status.providers)}
    </div>`,
  }
}

/**
 * `/status`: the strip and the providers of the dashboard, which asks for them when the stream says
 * that the status has changed.
 */
export function statusView(view: StatusView): View {
  const content = html`${statusStrip(view)} ${providers(view.status.providers)}`
  const page = { title: 'Status', section: 'dashboard', above: html`<h1>Status</h1>` }
  return contentView(page, content)
}

function statusStrip(view: StatusView): Html {
  const { status, baseUrl } = view
  const { connection, db, broker } = status
  const own = {
    id: 'status',
    ...followed('/status', 'status', 'home', 'status'),
    'hx-select-oob': '#providers:outerMorph',
  }
  return html`<div${attributes(own)}>
    <div class="strip">
      ${db === 'ok' && headline(view)}
      ${db === 'error' && html`<p class="headline trouble">Database out of reach</p>`}
      ${broker === 'error' && html`<p class="headline trouble">Broker out of reach</p>`}
      <p class="connection ${connection === 'receiving' && 'good'}" role="status">
        <span class="dot" aria-hidden="true"></span> <span>${connection}</span>
      </p>
      <p class="muted">at <code>${baseUrl}</code></p>
    </div>
    ${problemList(view)}
  </div>`
}

/** The chart of all providers. */
function activity(view: DashboardView): Html {
  const { stats, status } = view
  const hours = hourly(stats, status.generated_at)
  const bars = hours.map(({ label, events, rejections }) => ({
    label,
    title: `${label}: ${countText(events, 'event')}, ${rejections} rejected`,
    parts: [
      { kind: 'some', value: events },
      { kind: 'rejected', value: rejections },
    ],
  }))
  const content = html`${barChart(chartText(hours), bars, { kind: 'activity', height: 60 })}
    <p class="axis muted" aria-hidden="true"><span>24 hours ago</span><span>now</span></p>`
  const own = {
    id: 'activity',
    class: 'panel',
    ...polled('/', 30, 'activity'),
    // The stream does not tell when a destination begins to fail.
    'hx-select-oob': '#status:outerMorph',
  }
  return section('activity-title', 'Last 24 hours', content, own, totals(view))
}

/** The sums of the chart, which are its legend as well. */
function totals({ stats, unknown }: DashboardView): Html {
  const sum = (lines: readonly HourStats[], what: 'events' | 'rejections') =>
    lines.reduce((total, line) => total + line[what], 0)
  const astray = sum(
    stats.filter(({ provider }) => provider === unknown),
    'rejections',
  )
  const rejected = logUrl({ rejected: '1' })
  const toUnknown = logUrl({ rejected: '1', provider: unknown })
  return html`<ul class="legend">
    <li>
      <span class="swatch some"></span
      ><span data-total="events">${countText(sum(stats, 'events'), 'event')}</span>
    </li>
    <li>
      <span class="swatch rejected"></span
      ><a href="${rejected}">${sum(stats, 'rejections').toLocaleString('en')} rejected</a>
    </li>
    ${
      astray > 0 &&
      html`<li>
        <a href="${toUnknown}">${astray.toLocaleString('en')} of them to unknown paths</a>
      </li>`
    }
  </ul>`
}

function recentEvents({ events, position }: DashboardView): Html {
  const own = {
    id: 'recent',
    'data-newest': logUrl({ limit: MAX_RECENT }),
    'data-position': position,
    'data-max': MAX_RECENT,
  }
  // The styles show the one or the other: the script adds rows to a table that was empty.
  const content = html`${eventTable('recent-rows', 'Recent events, newest first', events)}
  ${emptyState('No events are kept at present.')}`
  const all = html`<a href="/log">All events</a>`
  return section('recent-title', 'Recent events', content, own, all)
}

function providers(lines: readonly ProviderLine[]): Html {
  const used = lines.filter((line) => !isIdle(line))
  const idle = lines.filter(isIdle)
  const content = html`${rowFilter('Find a provider', 'provider-rows', used.length)}
  ${used.length > 0 && providerTable('provider-rows', 'Providers and what they sent', used)}
  ${
    idle.length > 0 &&
    disclosed(
      `${countText(idle.length, 'provider')} not in use`,
      providerTable('idle-rows', 'Providers that are disabled and have received nothing', idle),
      { id: 'idle-providers' },
    )
  }`
  const count = countText(used.length, 'provider')
  const manage = html`<a href="/providers">Manage providers</a>`
  return section('providers-title', count, content, { id: 'providers' }, manage)
}

/** Disabled, and without deliveries: such as those that always exist, until somebody sets them up. */
function isIdle({ enabled, last_event_at, recent_rejections }: ProviderLine): boolean {
  return !enabled && last_event_at === null && recent_rejections === 0
}

function providerTable(bodyId: string, caption: string, lines: readonly ProviderLine[]): Html {
  const columns = ['Provider', 'State', 'Last 24 hours', 'Last event']
  return listTable({
    bodyId,
    caption,
    columns,
    kind: 'providers',
    rows: lines.map(providerRow),
  })
}

function providerRow(provider: ProviderLine): Html {
  const { name, trust_mode, enabled, last_event_at: last } = provider
  const { recent_count: received, recent_rejections: rejected } = provider
  const own = { 'data-provider': name, 'data-find': `${name} ${trust_mode}` }
  return tableRow(own, {
    type: rowLink(logUrl({ provider: name }), breakable(name)),
    verify: html`<span class="badges"
      >${trustBadge(trust_mode)} ${!enabled && html`<span class="badge">disabled</span>`}
      ${alarmBadges(provider.alarms)}</span
    >`,
    counts: html`${received} received ${rejected > 0 && rejectedLink(name, rejected)}`,
    when: last === null ? 'never' : timeTag(last),
  })
}

function rejectedLink(provider: string, count: number): Html {
  const href = logUrl({ provider, rejected: '1' })
  return html`<a class="rejected" href="${href}">${count} rejected</a>`
}

function firstWebhook({ status }: DashboardView): Html {
  const content = html`<p>
      Create a URL, and give it to a sender. What it sends shows up here. Once you see who sends,
      let Gatehouse check its signature.
    </p>
    ${createUrlForm('primary')} ${urlsBefore(status.providers)}
    <p class="muted">
      You know the sender? <a href="/providers/new">Choose it</a>: each delivery is verified then.
    </p>`
  const own = { id: 'start-here', class: 'panel', ...polled('/', 3, 'home') }
  return section('start-title', 'Receive the first webhook', content, own)
}

/** The way back to URLs that were created, and that nobody has sent to. */
function urlsBefore(lines: readonly ProviderLine[]): Html | false {
  const open = lines.filter(({ trust_mode }) => trust_mode === 'open')
  if (open.length === 0) return false
  const links = open.map(({ name }) => {
    return html` <a href="/providers/${encodeURIComponent(name)}/first">${breakable(name)}</a>`
  })
  return html`<p>Waiting for the first delivery:${links}</p>`
}

const HOUR_MS = 3_600_000
const HOURS = 24

interface Hour {
  label: string
  events: number
  rejections: number
}

/**
 * What all providers sent in each hour of the clock that the last 24 hours touch, oldest first.
 * The first hour has its end alone, the last one the time until `now`.
 */
export function hourly(stats: readonly HourStats[], now: Date): readonly Hour[] {
  const last = hourOf(now)
  return Array.from({ length: HOURS + 1 }, (_, at) => {
    const hour = last - HOURS + at
    const lines = stats.filter((line) => hourOf(line.hour) === hour)
    return {
      label: instantText(new Date(hour * HOUR_MS)),
      events: lines.reduce((sum, { events }) => sum + events, 0),
      rejections: lines.reduce((sum, { rejections }) => sum + rejections, 0),
    }
  })
}

function hourOf(time: Date): number {
  return Math.floor(time.getTime() / HOUR_MS)
}

function chartText(hours: readonly Hour[]) {
  const total = hours.reduce((sum, { events }) => sum + events, 0)
  const rejected = hours.reduce((sum, { rejections }) => sum + rejections, 0)
  if (total + rejected === 0) return 'No events in the last 24 hours'
  const peak = hours.reduce((most, hour) => (hour.events > most.events ? hour : most))
  const most = `at most ${peak.events} at ${peak.label}`
  const refused = rejected === 0 ? '' : `; ${rejected} rejected`
  return `Events per hour over 24 hours: ${total} in all, ${most}${refused}`
}
