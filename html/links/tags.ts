import type { Link } from '../../db/links/links.ts'
import type { Tag } from '../../db/links/tags.ts'
import type { User } from '../../db/links/users.ts'
import { html, type Html } from '../../kernel/html.ts'
import type { View } from '../../kernel/http/view.ts'
import { emptyList, listTable, tableRow } from '../parts.ts'
import { linksView } from './layout.ts'
import { linkRow, primaryOwner, visibilityBadge, type LinkSlice } from './links.ts'

/** `/-/tags`: tags of links that the viewer may see, with how many such links each has. */
export function tagsView(tags: readonly Tag[], next: string | null): View {
  const head = html`<h1>Tags</h1>`
  const way = 'Tags are given to a link where it is made or changed.'
  const table = listTable({
    bodyId: 'tags',
    caption: 'Tags, with the number of links that you may see',
    columns: ['Tag', { number: 'Links' }],
    rows: tags.map(tagRow),
    whenEmpty: emptyList('No link that you may see has a tag.', way),
    more: { next },
  })
  return linksView({ title: 'Tags', section: 'tags', head }, table)
}

function tagRow({ slug, link_count }: Tag): Html {
  const type = html`<a href="/-/tags/${slug}">${slug}</a>`
  const noun = link_count === 1 ? 'link' : 'links'
  const number = html`${link_count}<span class="narrow-only"> ${noun}</span>`
  return tableRow({ 'data-slug': slug }, { type, number })
}

/** `/-/tags/{slug}`: the links with a tag that the viewer may see. */
export function tagView(viewer: User, tag: string, slice: LinkSlice): View {
  const head = html`<p class="crumb"><a href="/-/tags">Tags</a></p>
    <h1>Links tagged “${tag}”</h1>`
  const table = listTable({
    bodyId: 'tagged',
    caption: `Links tagged ${tag} that you may see, by name`,
    columns: ['Link', 'Leads to', 'Kind', 'Owner'],
    kind: 'links',
    rows: slice.links.map((link) => taggedRow(link, viewer, slice)),
    more: { next: slice.next },
  })
  return linksView({ title: `Tag ${tag}`, section: 'tags', head }, table)
}

function taggedRow(link: Link, viewer: User, { short }: LinkSlice): Html {
  const { owners, visibility } = link
  const isPublic = visibility === 'public'
  const isOwner = owners.some(({ id }) => id === viewer.id)
  // Who sees a link that is not public owns it or was given it to read.
  const mayRead = viewer.role === 'admin' || !isPublic || isOwner
  const kind = !isPublic && visibilityBadge(visibility)
  return linkRow(link, short, mayRead, { kind, owner: primaryOwner(owners) })
}
