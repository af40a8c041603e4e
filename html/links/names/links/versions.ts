import type { Change } from '../../../../db/links/names/history.ts'
import type { Link } from '../../../../db/links/names/links.ts'
import { html } from '../../../../kernel/html.ts'
import type { Page, View } from '../../../../kernel/http/view.ts'
import { hiddenField, postForm, submit } from '../../../form.ts'
import { contentView } from '../../../layout.ts'
import { timeTag } from '../../../parts.ts'
import { changesOf, versionTable, type FieldTexts, type HistoryView } from '../history.ts'
import { shortName, type ShortLinks } from './links.ts'

/** `/-/links/{id}/history`: a page of older changes. */
export function historyPage(view: HistoryView, short: ShortLinks): Page {
  const { link } = view
  const body = html`<p class="crumb"><a href="/-/links/${link.id}">${link.slug}</a></p>
    <h1>History of ${shortName(short, link.slug)}</h1>
    ${view.changes.length === 0 && html`<p class="muted">No older changes are kept.</p>`}
    ${changesOf(view)}`
  return { title: `History of ${link.slug}`, section: 'links', body }
}

/** A version of a link beside the present one. */
interface VersionView {
  link: Pick<Link, 'id' | 'slug'>
  change: Change
  then: FieldTexts
  now: FieldTexts
  /** Of the link as it is now. */
  version: string
  /** Whether somebody changed the link since the page was opened. */
  isStale?: boolean
}

/** `/-/links/{id}/history/{change}`: what restoring a version changes. */
export function versionView(view: VersionView, short: ShortLinks): View {
  const { link, change, then, now, version, isStale } = view
  const page = `/-/links/${link.id}`
  const title = `A version of ${link.slug}`
  const table = versionTable(['Now', now], ['This version', then])
  const form = postForm(
    { action: `${page}/history/${change.id}/restore`, target: '#version' },
    html`${hiddenField('version', version)}
      <p class="actions">
        ${submit('Restore this version', { class: 'primary', id: 'restore-version' })}
        <a href="${page}">Keep the link as it is</a>
      </p>`,
  )
  const above = html`<p class="crumb"><a href="${page}">${link.slug}</a></p>
    <h1>A version of ${shortName(short, link.slug)}</h1>`
  const content = html`<section id="version" class="panel" aria-label="${title}">
    ${isStale === true && html`<p class="refused" role="alert">${STALE}</p>`}
    <p>
      As <bdi>${change.actor}</bdi> left it, ${timeTag(change.at)}. Owners and shares stay as they
      are.
    </p>
    ${table ?? html`<p>It is the same as the link is now.</p>`} ${table && form}
  </section>`
  return contentView({ title, section: 'links', above }, content)
}

const STALE =
  'Somebody else has changed this link since you opened this page, so nothing was restored. ' +
  'Compare again, then repeat it.'
