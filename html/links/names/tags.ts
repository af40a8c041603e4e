import type { Tag } from '../../../db/links/names/tags.ts'
import { html, type Html } from '../../../kernel/html.ts'
import type { View } from '../../../kernel/http/view.ts'
import { contentView } from '../../layout.ts'
import { emptyState, listTable, rowLink, tableRow } from '../../parts.ts'

/** `/-/tags`: tags of links that the viewer may see, with how many such links each has. */
export function tagsView(tags: readonly Tag[], next: string | null): View {
  const above = html`<h1>Tags</h1>`
  const way = 'Tags are given to a link where it is made or changed.'
  const table = listTable({
    bodyId: 'tags',
    caption: 'Tags, with the number of links that you may see',
    columns: ['Tag', { number: 'Links' }],
    rows: tags.map(tagRow),
    whenEmpty: emptyState('No link that you may see has a tag.', way),
    more: { next },
  })
  return contentView({ title: 'Tags', section: 'tags', above }, table)
}

function tagRow({ slug, link_count }: Tag): Html {
  const type = rowLink(`/-/tags/${slug}`, slug)
  const noun = link_count === 1 ? 'link' : 'links'
  const number = html`${link_count}<span class="narrow-only"> ${noun}</span>`
  return tableRow({ 'data-slug': slug }, { type, number })
}
