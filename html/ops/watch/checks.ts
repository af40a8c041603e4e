import type { State } from '../../../db/ops/watch/checks.ts'
import { html, type Html } from '../../../kernel/html.ts'
import type { View } from '../../../kernel/http/view.ts'
import type {
  CheckHealth,
  Health,
  HealthState,
  ServiceHealth,
} from '../../../services/ops/watch/checks/health.ts'
import type { Bar } from '../../../services/ops/watch/checks/history.ts'
import { hiddenField, postForm, submit } from '../../form.ts'
import {
  attributes,
  countLine,
  countText,
  listTable,
  nextLink,
  polled,
  rowLink,
  section,
  startHere,
  tableRow,
  timeTag,
} from '../../parts.ts'
import { menu } from '../../ways.ts'
import { dayBar, uptimeCell } from './checks/days.ts'
import { opsView, shortText } from '../layout.ts'

/** What `/checks` shows. */
export interface ChecksView {
  health: Health
  /** The services of this page. */
  services: readonly ServiceHealth[]
  /** The address of this page, which an open page polls. */
  path: string
  /** The address of the next page, if there is one. */
  older: string | undefined
  /** Where every check is listed, however many a service has: their bars, by the check's id. */
  bars: ReadonlyMap<number, Bar> | undefined
}

/** Checks of a service that a page of all services lists; the worst come first. */
const MAX_CHECKS = 30
/** Services without checks that the sentence at the top names. */
const MAX_NAMED = 3

const BADGES: Readonly<Record<State, string>> = {
  ok: 'verified',
  warn: 'open',
  fail: 'bad',
  unknown: 'unknown',
}
const LOOKS: Readonly<Record<HealthState, string>> = {
  empty: 'unknown',
  unchecked: 'bad',
  unknown: 'unknown',
  fail: 'bad',
  warn: 'warn',
  ok: 'good',
}

export const INVENTORY_EXAMPLE = `{
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
  const above = html`<p class="actions">
    <a class="button primary" href="/checks/new">Add a check</a>
    <a href="/mutes">Mutes and maintenance windows</a>
    <a href="/config#status-page">Status page</a>
  </p>`
  return opsView('Checks', checksFragment(view), { above })
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

function healthText({ state, services, total, checks }: Health): string {
  const good = `${checks.ok.length} of ${countText(total, 'check')} good`
  if (state === 'empty') return 'Nothing to check: no service has checks'
  if (state === 'unchecked') return 'Nothing has been checked lately'
  if (state === 'ok') return `All well: ${good}`
  const bare = services.filter((service) => service.checks.length === 0)
  const parts = [
    state === 'unknown' && good,
    countOf(checks.fail, ['1 check fails', 'checks fail']),
    countOf(checks.warn, ['1 check warns', 'checks warn']),
    countOf(checks.unknown, ['1 check is unknown', 'checks are unknown']),
    bare.length > 0 && `without checks: ${named(bare.map(({ name }) => name))}`,
  ]
  return parts.filter(Boolean).join('; ')
}

/** How many checks are in a state; false for none. One is named, more are in the rows below. */
function countOf(checks: readonly CheckHealth[], [one, many]: readonly [string, string]) {
  const [first] = checks
  if (first === undefined) return false
  return checks.length === 1
    ? `${one}: ${first.service}: ${first.name}`
    : `${checks.length} ${many}`
}

function named(names: readonly string[]): string {
  const rest = names.length - MAX_NAMED
  return `${names.slice(0, MAX_NAMED).join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`
}

/** The services alone; an open page polls them. */
function checksFragment(view: ChecksView): Html {
  const { health, services, path, older, bars } = view
  const isEmpty = health.state === 'empty'
  const total = countText(health.total, 'check')
  const boxes = isEmpty ? noChecks() : services.map((service) => serviceBox(service, bars))
  const content = html`${boxes} ${nextLink(older, 'More services')}`
  const own = { id: 'checks', ...(!isEmpty && polled(path, 10, 'checks')) }
  const count = countLine(`${countText(health.services.length, 'service')}, ${total}`)
  return section('checks-title', 'Services', content, own, count)
}

function noChecks(): Html {
  return startHere({
    title: 'Name what is to be checked',
    text: html`Write the services into a JSON file such as this one, and start Gatehouse with
      <code>OPS_INVENTORY</code> set to its path. Without it, this host and Gatehouse itself are
      checked. The file is read again when it changes.`,
    command: INVENTORY_EXAMPLE,
    path: '/checks',
    target: 'checks',
  })
}

/**
 * A service with its checks, open if one of them has run and is not ok. Where a page that renews
 * itself shows one that begins to fail, the script opens it (`data-opens`).
 */
function serviceBox(
  { name, checks }: ServiceHealth,
  bars: ReadonlyMap<number, Bar> | undefined,
): Html {
  const isOpen = bars !== undefined || checks.some(isBad)
  const id = `service-${escaped(name)}`
  const shown = bars === undefined ? checks.slice(0, MAX_CHECKS) : checks
  return html`<details${attributes({ class: 'panel service', id, open: isOpen, 'data-opens': isOpen })}>
    <summary><bdi>${name}</bdi> ${serviceBadges(checks)}</summary>
    ${checks.length === 0 ? NO_CHECKS : checkTable(`${id}-rows`, name, shown, bars)}
    ${nextLink(shown.length < checks.length ? serviceUrl(name) : undefined, `All ${checks.length} checks`)}
  </details>`
}

/** The page of a service's checks. */
export function serviceUrl(name: string): string {
  return `/checks?service=${escaped(name)}`
}

function escaped(name: string): string {
  return encodeURIComponent(name.toWellFormed())
}

/** Whether a run has found that it is not ok. */
function isBad({ state, checked_at }: CheckHealth): boolean {
  return state !== 'ok' && checked_at !== null
}

const NO_CHECKS = html`<p class="muted">
  Nothing is known of this service: give it checks in the inventory, or take it out.
</p>`

/** How many checks are in each state, the worst first. */
function serviceBadges(checks: readonly CheckHealth[]): Html | readonly Html[] {
  if (checks.length === 0) return html`<span class="badge unknown">no checks</span>`
  return [...Map.groupBy(checks, ({ state }) => state)].map(([state, some]) => {
    return html`${stateBadge(state, `${some.length} ${state}`)} `
  })
}

function checkTable(
  bodyId: string,
  service: string,
  checks: readonly CheckHealth[],
  bars: ReadonlyMap<number, Bar> | undefined,
): Html {
  const days = bars === undefined ? [] : [{ number: 'Up' }, '90 days']
  return listTable({
    bodyId,
    caption: `Checks of ${service}`,
    kind: 'dense checks',
    columns: ['Check', 'State', ...days, 'Last message', 'Since', { number: 'Took' }, 'Actions'],
    rows: checks.map((check) => rowOf(check, { bar: bars?.get(check.id) })),
  })
}

/** Which columns a row of the list has: those of a service alone have its days. */
export type RowKind = 'short' | 'days'

/** A check in a list; the answer to its buttons is the row alone. */
export function rowOf(
  check: CheckHealth,
  { bar, isMutedNow }: { bar?: Bar | undefined; isMutedNow?: boolean } = {},
): Html {
  const { id, name, type, state, message, since, checked_at, ms, source } = check
  return tableRow(
    { id: `check-${id}` },
    {
      type: html`${rowLink(`/checks/${id}`, html`<bdi>${name}</bdi>`, { id: `check-${id}-link` })}
        <span class="muted">${type}${source === 'hand' && ', made by hand'}</span>`,
      verify: html`${stateBadge(state)} ${mutedBadge(check.mute)}`,
      ...(bar !== undefined && {
        'number up': uptimeCell(bar.up, bar.days, 'day'),
        days: dayBar(name, bar),
      }),
      message: html`${shortText(message, 300)}
      ${check.mute && html`<span class="muted">${muteText(check.mute)}</span>`}`,
      when: checked_at && timeTag(since),
      number: checked_at && `${ms} ms`,
      'actions-cell': rowActions(check, bar === undefined ? 'short' : 'days', isMutedNow),
    },
  )
}

const DURATIONS = [
  ['1h', '1 hour'],
  ['8h', '8 hours'],
  ['1d', '1 day'],
  ['7d', '7 days'],
] as const

/** The reason of a mute for which none was typed. */
const ONE_CLICK = 'muted by one click'

function rowActions(check: CheckHealth, row: RowKind, isMutedNow = false): Html {
  const { id, name } = check
  const target = `#check-${id}`
  const place = hiddenField('row', row)
  const run = html`Run now <span class="hidden">${name}</span>`
  return html`<div class="row-actions">
    ${postForm({ action: `/checks/${id}/run`, target }, [place, submit(run, { id: `run-${id}` })])}
    ${muteAction(check, { target, place, isMutedNow })}
  </div>`
}

/**
 * Mutes a check, or ends its mute. What mutes more than this check ends elsewhere. Both have one
 * id, by which htmx gives the focus back; after one was muted by a menu, which is gone, it is given.
 */
export function muteAction(
  { id, name, mute }: CheckHealth,
  { target, place, isMutedNow }: { target: string; place?: Html; isMutedNow: boolean },
): Html {
  const own = { id: `mute-${id}`, autofocus: isMutedNow }
  const hidden = html`<span class="hidden">${name}</span>`
  if (mute?.check_name === null) {
    return html`<a class="button" href="/mutes" id="${own.id}">Muted… ${hidden}</a>`
  }
  if (mute !== undefined) {
    const form = { action: `/checks/${id}/unmute`, target }
    return postForm(form, html`${place} ${submit(html`Unmute ${hidden}`, own)}`)
  }
  const times = DURATIONS.map(([value, label]) => submit(label, { name: 'for', value }))
  const fields = html`${place} ${hiddenField('reason', ONE_CLICK)}`
  const form = postForm({ action: `/checks/${id}/mute`, target }, html`${fields} ${times}`)
  const other = { href: `/checks/${id}#mute`, label: 'Other times…' }
  return menu(html`Mute ${hidden}`, [form, other], own)
}

export function mutedBadge(mute: CheckHealth['mute']): Html | false {
  return mute !== undefined && html`<span class="badge">muted</span>`
}

/** Says what mutes a check, why, who did it, and until when. */
export function muteText(mute: NonNullable<CheckHealth['mute']>): Html {
  const { ends_at, reason, author, service, check_name } = mute
  const wider = service === null ? ' with everything' : ' with its service'
  return html`Muted${check_name === null && wider}:
    <bdi>${shortText(reason, 100)}</bdi> (<bdi>${author}</bdi>), until ${timeTag(ends_at, 'exact')}`
}

/** A state in its colour and its own word. */
export function stateBadge(state: State, text: string = state): Html {
  return html`<span class="badge ${BADGES[state]}">${text}</span>`
}
