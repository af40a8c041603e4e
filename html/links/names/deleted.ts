import type { DeletedLink } from '../../../db/links/names/deleted.ts'
import { html, type Html } from '../../../kernel/html.ts'
import type { View } from '../../../kernel/http/view.ts'
import { postForm, refusal, submit, type Form } from '../../form.ts'
import { contentView } from '../../layout.ts'
import { breakable, listTable, emptyState, tableRow, timeTag } from '../../parts.ts'
import { shortName, visibilityBadge, type ShortLinks } from './links/links.ts'

/** What `/-/deleted` shows. */
export interface DeletedView {
  links: readonly DeletedLink[]
  /** Address of the next page. */
  next: string | null
  /** How long a link can be restored. */
  days: number
  /** Why the last link could not be restored. */
  fault: Form['fault']
  short: ShortLinks
}

/** `/-/deleted`: links that were deleted lately, newest first, and a way to restore them. */
export function deletedView(view: DeletedView): View {
  const above = html`<p class="crumb"><a href="/-/">My links</a></p>
    <h1>Deleted links</h1>
    <p class="muted">
      A link can be restored for ${view.days} days, with its owners, shares, history and clicks.
      Its name must still be free.
    </p>`
  const table = listTable({
    bodyId: 'deleted',
    caption: 'Deleted links, the last one first',
    columns: ['Link', 'Led to', 'Visibility', 'Deleted', 'By', 'Change'],
    kind: 'deleted',
    rows: view.links.map((link) => deletedRow(link, view.short)),
    whenEmpty: emptyState('No deleted links.'),
    more: { next: view.next },
  })
  const content = html`<div id="deleted-links">
    ${refusal({ id: 'deleted', fault: view.fault })} ${table}
  </div>`
  return contentView({ title: 'Deleted links', section: 'links', above }, content)
}

function deletedRow(link: DeletedLink, short: ShortLinks): Html {
  const { id, slug, title, url, visibility, deleted_at, deleted_by } = link
  const label = html`Restore <span class="hidden">${slug}</span>`
  return tableRow(
    { 'data-slug': slug },
    {
      type: html`${shortName(short, slug)}
      ${title !== '' && html`<bdi class="detail title">${title}</bdi>`}`,
      target: html`<bdi class="clamp">${url}</bdi>`,
      kind: visibilityBadge(visibility),
      time: timeTag(deleted_at),
      owner: html`<bdi>${breakable(deleted_by)}</bdi>`,
      edit: postForm(
        { action: `/-/deleted/${id}/restore`, target: '#deleted-links' },
        submit(label, { id: `restore-${id}` }),
      ),
    },
  )
}
