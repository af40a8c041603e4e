import type { UsedLink } from '../../../../db/links/visits/stats.ts'
import { html, type Html } from '../../../../kernel/html.ts'
import type { View } from '../../../../kernel/http/view.ts'
import type { End } from '../../../../services/links/names/links/lifecycle.ts'
import { contentView } from '../../../layout.ts'
import { emptyState, listTable, section, timeTag } from '../../../parts.ts'
import { adminTabs } from '../../layout.ts'
import { endBadge, linkRow, type ShortLinks } from '../../names/links/links.ts'

/** Which links are used, and which are not. */
interface UsageView {
  /** The links that the visitor owns or co-owns, or those of everybody. */
  among: 'own' | 'all'
  /** The links with the most clicks; not on further pages. */
  mostUsed: readonly UsedLink[] | undefined
  unused: readonly UsedLink[]
  /** How many days without a visit make a link unused. */
  days: number
  /** Address of the next page of unused links. */
  next: string | null
  /** Why the visits of links have ended. */
  endOf: (link: UsedLink) => End | undefined
  short: ShortLinks
}

/** `/-/usage` and `/-/admin/usage`. */
export function usageView(view: UsageView): View {
  const { among, mostUsed, days } = view
  const own = html`<p class="crumb"><a href="/-/">My links</a></p>
    <h1>Usage</h1>
    <p class="muted">The links that you own or co-own.</p>`
  const all = html`<h1>Admin</h1>
    ${adminTabs('usage')}`
  const content = html`${mostUsed && section('most-used-title', 'Most used', usedTable(view, mostUsed))}
  ${section('unused-title', html`Unused for ${days} days`, unusedTable(view))}`
  const site =
    among === 'own' ? { section: 'links', above: own } : { section: 'admin', above: all }
  return contentView({ title: 'Usage', ...site }, content)
}

const COLUMNS = ['Link', 'Leads to', 'State', { number: 'Clicks' }, 'Last visit']

function usedTable(view: UsageView, links: readonly UsedLink[]): Html {
  return listTable({
    bodyId: 'most-used',
    caption: 'The links with the most clicks',
    columns: COLUMNS,
    kind: 'dense links',
    rows: links.map((link) => usageRow(link, view)),
    whenEmpty: emptyState('No link was visited yet.'),
  })
}

function unusedTable(view: UsageView): Html {
  return listTable({
    bodyId: 'unused',
    caption: `Links without a visit for ${view.days} days, the one unused for longest first`,
    columns: COLUMNS,
    kind: 'dense links',
    rows: view.unused.map((link) => usageRow(link, view)),
    whenEmpty: emptyState('Every link was visited or created lately.'),
    more: { next: view.next, label: 'More links', end: 'No more links.' },
  })
}

function usageRow(link: UsedLink, { short, endOf }: UsageView): Html {
  const { clicks, clicked_at, used_at } = link
  const visited = clicked_at === null ? html`never, created ${timeTag(used_at)}` : timeTag(used_at)
  return linkRow(link, short, true, {
    kind: html`<span class="badges">${endBadge(endOf(link))}</span>`,
    number: html`${clicks}<span class="narrow-only"> ${clicks === 1 ? 'click' : 'clicks'}</span>`,
    when: visited,
  })
}
