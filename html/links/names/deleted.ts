import type { DeletedLink } from '../../../db/links/names/deleted.ts'
import { html, type Html } from '../../../kernel/html.ts'
import type { FormState, View } from '../../../kernel/http/view.ts'
import { field, postForm, refusal, submit, VERBATIM, type Form } from '../../form.ts'
import { contentView } from '../../layout.ts'
import { breakable, listTable, emptyState, tableRow, timeTag } from '../../parts.ts'
import { shortName, visibilityBadge, type ShortLinks } from './links/links.ts'

/** What `/-/deleted` shows. */
interface DeletedView {
  links: readonly DeletedLink[]
  /** Address of the next page. */
  next: string | null
  /** How long a link can be restored. */
  days: number
  refused: RefusedRestore | undefined
  short: ShortLinks
}

/** A link that could not be restored, and why. */
export interface RefusedRestore {
  id: string
  form: FormState
  /** Whether another link has one of its names. */
  isTaken: boolean
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
    ${view.refused !== undefined && refusedRestore(view.refused, view.short)} ${table}
  </div>`
  return contentView({ title: 'Deleted links', section: 'links', above }, content)
}

function refusedRestore(
  { id, form: state, isTaken }: RefusedRestore,
  short: ShortLinks,
): Html | false {
  const form: Form = { ...state, id: 'deleted' }
  if (!isTaken && !Object.hasOwn(state.fault?.fields ?? {}, 'slug')) return refusal(form)
  const path = `/-/deleted/${id}/restore`
  const target = '#deleted-links'
  return html`<section class="panel stack">
    ${refusal(form)}
    ${
      isTaken &&
      postForm(
        { action: `${path}?without_taken=true`, target },
        submit('Restore without it', { id: 'restore-without' }),
      )
    }
    ${postForm(
      { action: `${path}-as`, target },
      html`${field(form, 'slug', 'Another name', { prefix: `${short.shown}/`, ...VERBATIM })}
        <p class="actions">${submit('Restore as this', { id: 'restore-as' })}</p>`,
    )}
  </section>`
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
