import type { MissingSlug } from '../../../db/links/visits/missing.ts'
import { html } from '../../../kernel/html.ts'
import type { View } from '../../../kernel/http/view.ts'
import { contentView } from '../../layout.ts'
import { emptyState, listTable, tableRow } from '../../parts.ts'
import { adminTabs } from '../layout.ts'
import { shortName, type ShortLinks } from '../names/links/links.ts'

/** `/-/admin/missing`: slugs that visitors asked for and no link has. */
export function missingView(slugs: readonly MissingSlug[], days: number, short: ShortLinks): View {
  const above = html`<h1>Missing links</h1>
    ${adminTabs('missing')}
    <p class="muted">
      Names that visitors asked for in ${days} days and that no link has. Of each day, the 1,000
      that were asked for most are kept.
    </p>`
  const rows = slugs.map(({ slug, visits, last_day }) => {
    const noun = visits === 1 ? 'visit' : 'visits'
    return tableRow(
      { 'data-slug': slug },
      {
        type: shortName(short, slug),
        number: html`${visits}<span class="narrow-only"> ${noun}</span>`,
        time: html`<span class="narrow-only">Last on </span>${last_day}`,
        edit: html`<a href="/-/new?slug=${slug}"
          >Create <span class="hidden">the link ${slug}</span></a
        >`,
      },
    )
  })
  const table = listTable({
    bodyId: 'missing',
    caption: 'Missing links, the one that was asked for most first',
    columns: ['Name', { number: 'Visits' }, 'Last day (UTC)', 'Change'],
    kind: 'missing',
    rows,
    whenEmpty: emptyState('Nobody asked for a missing link.'),
  })
  return contentView({ title: 'Missing links', section: 'admin', above }, table)
}
