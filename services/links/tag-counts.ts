import type { TagCount, Visibility } from '../../db/links/rows.ts'

/** What the tags' counters are about: a link before or after a change. */
interface Tagged {
  readonly tags: readonly string[]
  readonly visibility: Visibility
}

/** How links that were and links that are now move the counters of tags, each tag once and sorted. */
export function tagCounts(before: readonly Tagged[], after: readonly Tagged[]): TagCount[] {
  const counts = new Map<string, { links: number; public_links: number }>()
  function add({ tags, visibility }: Tagged, sign: 1 | -1): void {
    for (const tag of tags) {
      const count = counts.get(tag) ?? { links: 0, public_links: 0 }
      count.links += sign
      if (visibility === 'public') count.public_links += sign
      counts.set(tag, count)
    }
  }
  for (const link of before) add(link, -1)
  for (const link of after) add(link, 1)
  return [...counts]
    .filter(([, { links, public_links }]) => links !== 0 || public_links !== 0)
    .map(([tag, count]) => ({ tag, ...count }))
    .toSorted((a, b) => (a.tag < b.tag ? -1 : 1))
}
