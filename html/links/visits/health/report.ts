import type { CheckedLink, HealthState } from '../../../../db/links/visits/health.ts'
import { html, type Html } from '../../../../kernel/html.ts'
import type { View } from '../../../../kernel/http/view.ts'
import { sentence } from '../../../form.ts'
import { contentView } from '../../../layout.ts'
import { breakable, emptyState, listTable, timeTag } from '../../../parts.ts'
import { tabs } from '../../../ways.ts'
import { BROKEN } from './section.ts'
import { linkRow, type ShortLinks } from '../../names/links/links.ts'

/** What `/-/health` shows. */
interface HealthView {
  links: readonly CheckedLink[]
  /** Address of the next page. */
  next: string | null
  state: HealthState
  /** How often addresses are checked; undefined: never. */
  interval: string | undefined
  /** Whether these are the links of all users. */
  ofAll: boolean
  short: ShortLinks
}

const TABS = [
  ['broken', 'Broken'],
  ['unknown', 'Unknown'],
  ['ok', 'Well'],
] as const

const ABOUT: Readonly<Record<HealthState, string>> = {
  broken: BROKEN,
  unknown: 'It can’t be said whether the page is there.',
  ok: 'The last check found the page, or was sent on to another one.',
}

const EMPTY: Readonly<Record<HealthState, string>> = {
  broken: 'No broken links.',
  unknown: 'No links in doubt.',
  ok: 'No checked links.',
}

/** `/-/health`: what checks found of the addresses of links, broken ones first. */
export function healthView(view: HealthView): View {
  const { links, next, state, interval, ofAll } = view
  const scope = ofAll ? 'Every link there is' : 'The links that you own'
  const above = html`<p class="crumb"><a href="/-/">My links</a></p>
    <h1>Health of links</h1>
    <p class="muted">
      ${scope}${interval === undefined ? '.' : `; each address is checked ${interval}.`}
    </p>
    ${interval === undefined && OFF}
    ${tabs(
      'State',
      TABS.map(([value, label]) => {
        return { href: `/-/health?state=${value}`, label, isCurrent: value === state }
      }),
    )}
    <p class="muted">${ABOUT[state]}</p>`
  const table = listTable({
    bodyId: 'checked',
    caption: `Links by name, state ${state}`,
    columns: ['Link', 'Leads to', 'Found', 'Since', 'Last check', 'Owner'],
    kind: 'dense checked',
    rows: links.map((link) => checkedRow(link, view)),
    whenEmpty: emptyState(EMPTY[state]),
    more: { next },
  })
  return contentView({ title: 'Health of links', section: 'links', above }, table)
}

const OFF = html`<p class="note">
  Checks are off. An administrator turns them on by <code>LINKS_CHECK</code>.
</p>`

function checkedRow(link: CheckedLink, { short }: HealthView): Html {
  const { problem, since, checked_at, owners } = link
  return linkRow(link, short, true, {
    kind: problem === null ? 'ok' : sentence(problem),
    when: since !== null && html`<span class="narrow-only">Since </span>${timeTag(since)}`,
    checked:
      checked_at !== null && html`<span class="narrow-only">Checked </span>${timeTag(checked_at)}`,
    owner: html`<bdi>${breakable(owners[0] ?? '')}</bdi>`,
  })
}
