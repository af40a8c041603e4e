import { html, type Html } from '../../kernel/html.ts'
import type { View } from '../../kernel/http/view.ts'
import type {
  CheckHealth,
  Health,
  HealthState,
  ServiceHealth,
} from '../../services/ops/checks/health.ts'
import { countLine, countText, listTable, nextLink, rowLink } from '../parts.ts'
import { startHere, tableRow, timeTag } from '../parts.ts'
import { opsView, shortText } from './layout.ts'

/** What `/checks` shows. */
export interface ChecksView {
  health: Health
  /** The services of this page. */
  services: readonly ServiceHealth[]
  /** The address of this page, which an open page asks for again. */
  path: string
  /** The address of the next page, if there is one. */
  older: string | undefined
  /** Whether every check is listed, however many a service has. */
  isWhole: boolean
}

/** Checks of a service that a page of all services lists; those that fail come first. */
const MAX_CHECKS = 30
/** Failures that the sentence at the top names. */
const MAX_NAMED = 3

const LOOKS: Readonly<Record<HealthState, string>> = {
  empty: 'unknown',
  unchecked: 'unknown',
  failing: 'bad',
  stale: 'warn',
  partial: 'warn',
  well: 'good',
}

const EXAMPLE = `{
  "services": [
    {
      "name": "shop",
      "checks": [
        { "type": "http", "url": "https://shop.example/health" },
        { "type": "tls", "host": "shop.example" }
      ]
    }
  ]
}`

/** `/checks`: each service of the inventory with its checks. */
export function checksView(view: ChecksView): View {
  return opsView('Checks', checksFragment(view))
}

/** Whether all is well, in a sentence. */
export function healthLine(health: Health): Html {
  const { checkedAt } = health
  return html`<p class="connection health ${LOOKS[health.state]}">
    <span class="dot" aria-hidden="true"></span>
    <span
      ><span role="status">${healthText(health)}</span
      >${checkedAt !== undefined && html`, last checked ${timeTag(checkedAt)}`}</span
    >
  </p>`
}

function healthText({ state, total, good, unchecked, failing }: Health): string {
  const checks = `${good} of ${countText(total, 'check')}`
  switch (state) {
    case 'empty':
      return 'Nothing to check: no service has checks'
    case 'unchecked':
      return 'Nothing is checked yet'
    case 'failing':
      return failingText(failing)
    case 'stale':
      return `Not checked lately: ${checks} were good`
    case 'partial':
      return `${checks} good, ${unchecked} not checked yet`
    case 'well':
      return `All well: ${checks} good`
  }
}

function failingText(failing: Health['failing']): string {
  const count = failing.length === 1 ? '1 check fails' : `${failing.length} checks fail`
  const named = failing.slice(0, MAX_NAMED).map(({ service, name }) => `${service}: ${name}`)
  const rest = failing.length - named.length
  return `${count}: ${named.join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`
}

/** The services alone; an open page asks for them again and again. */
export function checksFragment(view: ChecksView): Html {
  const { health, services, path, older, isWhole } = view
  const poll = html`hx-get="${path}" hx-trigger="every 10s" hx-swap="outerMorph" hx-target="this"`
  const isEmpty = health.state === 'empty'
  const total = countText(health.total, 'check')
  return html`<section id="checks" aria-labelledby="checks-title" ${!isEmpty && poll}>
    <div class="title-line">
      <h2 id="checks-title">Services</h2>
      ${countLine(`${countText(health.services.length, 'service')}, ${total}`)}
    </div>
    ${isEmpty ? noChecks() : services.map((service) => serviceBox(service, isWhole))}
    ${nextLink(older, 'More services')}
  </section>`
}

function noChecks(): Html {
  return startHere({
    title: 'Name what is to be checked',
    text: html`Write the services into a JSON file such as this one, and start Gatehouse with
      <code>OPS_INVENTORY</code> set to its path. Without it, this host and Gatehouse itself are
      checked. The file is read again when it changes; the next session checks what it names.`,
    command: EXAMPLE,
    path: '/checks',
    target: 'checks',
  })
}

/**
 * A service with its checks: open if one fails, else folded. The id says which: a service that
 * begins to fail is another element to htmx, so it opens.
 */
function serviceBox({ name, checks }: ServiceHealth, isWhole: boolean): Html {
  const failing = checks.filter(({ last }) => last?.ok === false).length
  const isOpen = failing > 0 || isWhole
  const id = `${isOpen ? 'open' : 'folded'}-${encodeURIComponent(name.toWellFormed())}`
  const shown = isWhole ? checks : checks.slice(0, MAX_CHECKS)
  const href = `/checks?service=${encodeURIComponent(name.toWellFormed())}`
  return html`<details class="panel service" id="${id}" ${isOpen && html`open`}>
    <summary><bdi>${name}</bdi> ${serviceBadge(checks, failing)}</summary>
    ${checkTable(`${id}-rows`, name, shown)}
    ${nextLink(shown.length < checks.length ? href : undefined, `All ${checks.length} checks`)}
  </details>`
}

function serviceBadge(checks: readonly CheckHealth[], failing: number): Html {
  const total = checks.length
  if (failing > 0) return html`<span class="badge bad">${failing} of ${total} fail</span>`
  const unchecked = checks.filter(({ last }) => last === undefined).length
  if (total === 0) return html`<span class="badge">no checks</span>`
  if (unchecked === total) return html`<span class="badge">not checked yet</span>`
  if (unchecked > 0) return html`<span class="badge open">${unchecked} not checked yet</span>`
  return html`<span class="badge verified">${total} ok</span>`
}

function checkTable(
  bodyId: string,
  service: string,
  checks: readonly CheckHealth[],
): Html | false {
  if (checks.length === 0) return false
  return listTable({
    bodyId,
    caption: `Checks of ${service}`,
    kind: 'feed',
    columns: ['Check', 'State', 'Last message', 'Since', 'Checked', { number: 'Took' }],
    rows: checks.map(checkRow),
  })
}

function checkRow({ name, type, level, last }: CheckHealth): Html {
  const title = html`<bdi>${name}</bdi>`
  const session = last?.session_id ?? null
  const link = session === null ? title : rowLink(`/sessions/${session}`, title)
  return tableRow(
    {},
    {
      type: html`${link} <span class="detail">${type}</span>`,
      verify: checkBadge(level, last?.ok),
      message: last === undefined ? '' : shortText(last.message, 300),
      when: last && timeTag(last.since),
      'when checked': last && timeTag(last.checked_at),
      number: last && `${last.ms} ms`,
    },
  )
}

function checkBadge(level: CheckHealth['level'], ok: boolean | undefined): Html {
  if (ok === undefined) return html`<span class="badge">not checked yet</span>`
  if (ok) return html`<span class="badge verified">ok</span>`
  return html`<span class="badge ${level === 'critical' ? 'bad' : 'open'}">fail</span>`
}
