import type { Visibility, Lifecycle, Link, Owner } from '../../../../db/links/names/links.ts'
import { html, type Html, type Printable } from '../../../../kernel/html.ts'
import type { Page } from '../../../../kernel/http/view.ts'
import type { End } from '../../../../services/links/names/links/lifecycle.ts'
import { postForm, submit } from '../../../form.ts'
import { copyBox, rowLink, tableRow, timeTag } from '../../../parts.ts'

/** How short links are written: for people, and as addresses. */
export interface ShortLinks {
  keyword: string
  /** What pages show before the slash: the keyword, or host and port where only these lead here. */
  shown: string
  /** Public address of the service, without a slash at its end; '' where it is not known. */
  base: string
}

/** A short link as people say it: `go/docs`. */
export function shortName({ shown }: ShortLinks, slug: string): Html {
  return html`<span class="keyword">${shown}/</span>${slug}`
}

/** The short address with a copy button, or a note where the public address is unknown. */
export function shortAddress({ base }: ShortLinks, slug: string): Html {
  if (base !== '') return copyBox('short-link', 'short link', `${base}/${slug}`)
  return html`<p class="note">
    This service does not know its public address. Set <code>LINKS_BASE_URL</code>, and short links
    can be copied here.
  </p>`
}

const ABOUT: Readonly<Record<Visibility, string>> = {
  public: 'Everybody who is signed in finds it',
  private: 'Everybody who knows it may follow it; only owners, recipients and admins find it',
  secure: 'Only owners, recipients and admins may follow it',
}

export function visibilityBadge(visibility: Visibility): Html {
  const kind = { public: 'verified', private: '', secure: 'open' }[visibility]
  return html`<span class="badge ${kind}" title="${ABOUT[visibility]}">${visibility}</span>`
}

/** Shown where the visits of a link have ended. */
export function endBadge(end: End | undefined): Html | false {
  return end !== undefined && html`<span class="badge ended">${end.replace('_', ' ')}</span>`
}

/** A part of a list of links. */
export interface LinkSlice {
  links: readonly Link[]
  /** Address of the next page. */
  next: string | null
  short: ShortLinks
}

/** What a row says of a link. */
type RowLink = Pick<Link, 'id' | 'slug' | 'title' | 'url'>

/** Lists show the beginning of a text: fifty long ones would be a long page. */
const MAX_ROW_TEXT = 100
const MAX_HOVER_TEXT = 300

/**
 * A line about a link: its name and title lead to the link's page, or to its preview; its address,
 * without what all addresses have, follows the link. Further cells follow.
 */
export function linkRow(
  { id, slug, title, url }: RowLink,
  short: ShortLinks,
  mayRead: boolean,
  cells: Readonly<Record<string, Printable>>,
): Html {
  const name = rowLink(mayRead ? `/-/links/${id}` : `/${slug}+`, shortName(short, slug))
  const type = html`${name}${title !== '' && html` <bdi class="title">${title}</bdi>`}`
  const target = html`<a href="/${slug}" rel="noreferrer" title="${cut(url, MAX_HOVER_TEXT)}"
    ><bdi>${cut(hostAndPath(url))}</bdi></a
  >`
  return tableRow({ 'data-slug': slug }, { type, target, ...cells })
}

/** An address without `https://` and a final slash. */
function hostAndPath(url: string): string {
  return url.replace(/^https:\/\//, '').replace(/\/$/, '')
}

/** The beginning of a text, in one line. */
function cut(text: string, most = MAX_ROW_TEXT): string {
  const line = text.replaceAll(/\s+/g, ' ')
  const characters = [...line]
  if (characters.length <= most) return line
  return `${characters.slice(0, most - 1).join('')}…`
}

export function primaryOwner(owners: readonly Owner[]): string | undefined {
  return owners.find(({ is_primary }) => is_primary)?.email
}

/** Tags, each leading to the links that have it. */
export function tagList(tags: readonly string[]): readonly Html[] {
  return tags.map((tag) => html`<a class="tag" href="/-/tags/${tag}">#${tag}</a>`)
}

/** Why the visits of a link have ended, in a sentence. */
export function endText({ expires_at, max_visits }: Lifecycle, end: End | undefined): Html {
  switch (end) {
    case 'archived':
      return html`It is archived.`
    case 'expired':
      return html`It expired${expires_at && html` ${timeTag(expires_at)}`}.`
    case 'used_up':
    case undefined:
      // Undefined while the last visits are not in the database yet.
      return html`All of its ${max_visits} visits are used up.`
  }
}

/** `/-/links/{id}/delete`: asks before anything is deleted. */
export function deletePage({ id, slug, url }: Link, days: number, short: ShortLinks): Page {
  const body = html`<p class="crumb"><a href="/-/links/${id}">${slug}</a></p>
    <section class="panel stack">
      <h1>Delete ${shortName(short, slug)}?</h1>
      <p>
        It leads to <code><bdi>${url}</bdi></code
        >.
      </p>
      <p>
        Visitors will get an error, and anybody may take its name. For ${days} days an owner or an
        admin can restore it under <a href="/-/deleted">Deleted links</a>. To keep it without
        visitors, archive it instead.
      </p>
      ${postForm(
        { action: `/-/links/${id}/delete` },
        html`<p class="actions">
          ${submit('Delete the link', { class: 'danger', id: 'delete-link' })}
          <a href="/-/links/${id}">Keep it</a>
        </p>`,
      )}
    </section>`
  return { title: `Delete ${slug}`, section: 'links', body }
}
