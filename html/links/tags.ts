import type { Link } from '../../db/links/links.ts'
import type { Tag } from '../../db/links/tags.ts'
import type { User } from '../../db/links/users.ts'
import { html, type Html } from '../../kernel/html.ts'
import { listTable, moreLink } from '../parts.ts'
import { linksPage, type Viewer } from './layout.ts'
import { linkCell, visibilityBadge, type ShortLinks } from './links.ts'

/** `/-/tags`: tags of links that the viewer may see, with how many such links each has. */
export interface TagsView {
  readonly tags: readonly Tag[]
  readonly next: string | null
}

/** `/-/tags/{slug}`: the links with a tag that the viewer may see. */
export interface TagView {
  readonly tag: string
  readonly links: readonly Link[]
  readonly next: string | null
  readonly short: ShortLinks
  readonly viewer: User
}

export function tagsPage(viewer: Viewer, view: TagsView): Html {
  const body = html`<h1>Tags</h1>
    ${tagsFragment(view)}`
  return linksPage(viewer, { title: 'Tags', section: 'tags', body })
}

/** The list alone: what htmx takes the next rows from. */
export function tagsFragment({ tags, next }: TagsView): Html {
  if (tags.length === 0) {
    return html`<div class="panel empty">
      <p><strong>No link that you may see has a tag.</strong></p>
      <p>Tags are given to a link where it is made or changed.</p>
    </div>`
  }
  const columns = ['Tag', { number: 'Links' }]
  const caption = 'Tags, with the number of links that you may see'
  return html`${listTable({ bodyId: 'tags', caption, columns, rows: tags.map(tagRow) })}
  ${moreLink({ rows: 'tags', next })}`
}

export function tagPage(view: TagView): Html {
  const body = html`<p class="crumb"><a href="/-/tags">Tags</a></p>
    <h1>Links tagged “${view.tag}”</h1>
    ${tagFragment(view)}`
  return linksPage(view.viewer, { title: `Tag ${view.tag}`, section: 'tags', body })
}

/** The list alone: what htmx takes the next rows from. */
export function tagFragment(view: TagView): Html {
  const { tag, links, next } = view
  const table = listTable({
    bodyId: 'tagged',
    caption: `Links tagged ${tag} that you may see, by name`,
    columns: ['Link', 'Leads to', 'Kind', 'Owner'],
    kind: 'links',
    rows: links.map((link) => linkRow(link, view)),
  })
  return html`${table} ${moreLink({ rows: 'tagged', next })}`
}

function tagRow({ slug, link_count }: Tag): Html {
  return html`<tr role="row" data-slug="${slug}">
    <td role="cell" class="type"><a href="/-/tags/${slug}">${slug}</a></td>
    <td role="cell" class="number">
      ${link_count}<span class="narrow-only"> ${link_count === 1 ? 'link' : 'links'}</span>
    </td>
  </tr>`
}

function linkRow(link: Link, { short, viewer }: TagView): Html {
  const { slug, url, owners, visibility } = link
  const owner = owners.find(({ is_primary }) => is_primary)
  // Who sees a link that is not public owns it or was given it to read.
  const mayRead =
    viewer.role === 'admin' || visibility !== 'public' || owners.some((one) => one.id === viewer.id)
  return html`<tr role="row" data-slug="${slug}">
    ${linkCell(link, short, mayRead)}
    <td role="cell" class="target"><bdi>${url}</bdi></td>
    <td role="cell" class="kind">${visibility !== 'public' && visibilityBadge(visibility)}</td>
    <td role="cell" class="owner">${owner?.email}</td>
  </tr>`
}
