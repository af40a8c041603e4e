import { html, type Html } from '../../../kernel/html.ts'
import type { Page } from '../../../kernel/http/view.ts'
import type { Incident, PublicStatus, ServiceStatus } from '../../../services/ops/watch/status.ts'
import { layout } from '../../layout.ts'
import { timeTag } from '../../parts.ts'
import { dayBar, uptimeCell } from './checks/days.ts'
import { durationText } from '../layout.ts'

const LOOKS = { ok: 'verified', warn: 'open', fail: 'bad', unknown: 'unknown' } as const
const WORDS = { ok: 'up', warn: 'impaired', fail: 'down', unknown: 'not known' } as const

/** The document of `/status`: it leads to no other page. */
export function statusDocument(status: PublicStatus): Html {
  const site = {
    service: 'ops',
    services: [],
    home: '/status',
    assets: '/assets',
    tagline: 'status',
    navigation: [],
  }
  return layout(site, statusPage(status))
}

function statusPage({ services, incidents, readAt }: PublicStatus): Page {
  const body = html`<h1>Status</h1>
    <p class="connection health ${lookOf(services)}">
      <span class="dot" aria-hidden="true"></span>
      <span role="status">${sentenceOf(services)}</span>
    </p>
    ${services.map(serviceRow)}
    <h2>Incidents of 14 days</h2>
    ${
      incidents.length === 0
        ? html`<p>None.</p>`
        : html`<ul>
            ${incidents.map(incidentRow)}
          </ul>`
    }
    <p class="muted">As of ${timeTag(readAt, 'exact')}</p>`
  return { title: 'Status', section: 'none', body }
}

/** A service that is down decides before one that is not known. */
function lookOf(services: readonly ServiceStatus[]): string {
  const has = (wanted: ServiceStatus['state']) => services.some(({ state }) => state === wanted)
  if (has('fail')) return 'bad'
  if (has('warn')) return 'warn'
  return services.length === 0 || has('unknown') ? 'unknown' : 'good'
}

function sentenceOf(services: readonly ServiceStatus[]): string {
  const down = services.filter(({ state }) => state === 'fail').map(({ name }) => name)
  if (down.length > 0) return `Down: ${down.join(', ')}`
  const impaired = services.filter(({ state }) => state === 'warn').map(({ name }) => name)
  if (impaired.length > 0) return `Impaired: ${impaired.join(', ')}`
  const isKnown = services.length > 0 && services.every(({ state }) => state === 'ok')
  return isKnown ? 'All services are up' : 'The state of some services is not known'
}

function serviceRow({ name, state, maintenance, days, up }: ServiceStatus): Html {
  const part = uptimeCell(up, days, 'day')
  const uptime = up === null ? part : `up ${part}`
  return html`<section class="panel status">
    <div class="title-line">
      <h2><bdi>${name}</bdi></h2>
      <p>
        ${maintenance && html`<span class="badge">maintenance</span>`}
        <span class="badge ${LOOKS[state]}">${WORDS[state]}</span>
      </p>
    </div>
    ${dayBar(name, { days, up })}
    <p class="muted axis">
      <span>${days.length} days ago</span><span>${uptime}</span><span>today</span>
    </p>
  </section>`
}

function incidentRow({ service, began_at, ended_at }: Incident): Html {
  const end =
    ended_at === null
      ? html`not over yet`
      : html`for ${durationText(ended_at.getTime() - began_at.getTime())}`
  return html`<li><bdi>${service}</bdi> was down from ${timeTag(began_at, 'exact')}, ${end}</li>`
}
