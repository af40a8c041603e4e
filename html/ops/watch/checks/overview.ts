import { html, type Html } from '../../../../kernel/html.ts'
import type { CheckHealth, ServiceHealth } from '../../../../services/ops/watch/checks/health.ts'
import type { Recent } from '../../../../services/ops/watch/checks/recent.ts'
import {
  countText,
  listTable,
  nextLink,
  rowLink,
  section,
  startHere,
  tableRow,
} from '../../../parts.ts'
import { INVENTORY_EXAMPLE, mutedBadge, serviceUrl, stateBadge } from '../checks.ts'
import { shortText } from '../../layout.ts'
import { hourBar, uptimeCell } from './days.ts'

/** The services on the dashboard. */
export interface ServicesView {
  /** The worst first; the dashboard has the beginning. */
  services: readonly ServiceHealth[]
  /** How many there are. */
  total: number
  /** The last 24 hours, by the service's name. */
  recent: ReadonlyMap<string, Recent>
}

/** Each service in a row: its state, its last 24 hours, and the part of them that was up. */
export function servicesPanel({ services, total, recent }: ServicesView): Html {
  const table = listTable({
    bodyId: 'service-rows',
    caption: 'Services, the worst first',
    kind: 'dense services',
    columns: ['Service', 'State', 'Last 24 hours', { number: 'Up' }],
    rows: services.map((service) => serviceRow(service, recent.get(service.name))),
  })
  const rest = total > services.length ? '/checks' : undefined
  const all = html`<a href="/checks">All checks</a>`
  const content = html`${table} ${nextLink(rest, `All ${countText(total, 'service')}`)}`
  return section('services-title', 'Services', content, { id: 'services' }, all)
}

function serviceRow({ name, state, checks }: ServiceHealth, recent: Recent | undefined): Html {
  const { hours = [], up = null } = recent ?? {}
  const worst = checks.find((check) => check.state !== 'ok')
  return tableRow(
    {},
    {
      type: html`${rowLink(serviceUrl(name), html`<bdi>${name}</bdi>`)}
      ${worst !== undefined && html`<span class="detail">${problemText(worst)}</span>`}`,
      verify: html`${
        checks.length === 0
          ? html`<span class="badge unknown">no checks</span>`
          : stateBadge(state)
      }
      ${mutedBadge(worst?.mute)}`,
      hours: hourBar(name, hours, up),
      number: uptimeCell(up, hours, 'hour'),
    },
  )
}

/** Why nobody is told comes first: the row has one line, which may be cut. */
function problemText({ name, message, mute }: CheckHealth): string {
  const muted = mute === undefined ? '' : `muted, ${shortText(mute.reason, 60)} · `
  return shortText(`${muted}${name}: ${message}`, 120)
}

/** Says how to add the first service. */
export function firstService(): Html {
  return startHere({
    title: 'Add the first service',
    text: html`<a href="/checks/new">Add a check</a> here. Or write the services into a JSON file
      such as this one, and start Gatehouse with <code>OPS_INVENTORY</code> set to its path. The
      file is read again when it changes.`,
    command: INVENTORY_EXAMPLE,
    path: '/',
    target: 'now',
  })
}
