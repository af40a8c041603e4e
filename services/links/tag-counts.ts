import type { TagCount, Visibility } from '../../db/links/rows.ts'

/** What the tags' counters are about: one link before or after a change. */
interface Tagged {
  readonly tags: readonly string[]
  readonly visibility: Visibility
}

/** How a change of one link moves the counters of tags, sorted; undefined stands for no link. */
export function tagCounts(before: Tagged | undefined, after: Tagged | undefined): TagCount[] {
  const counts = new Map<string, { links: number; public_links: number }>()
  function add(link: Tagged | undefined, sign: 1 | -1): void {
    for (const tag of link?.tags ?? []) {
      const count = counts.get(tag) ?? { links: 0, public_links: 0 }
      count.links += sign
      if (link?.visibility === 'public') count.public_links += sign
      counts.set(tag, count)
    }
  }
  add(before, -1)
  add(after, 1)
  return [...counts]
    .filter(([, { links, public_links }]) => links !== 0 || public_links !== 0)
    .map(([tag, count]) => ({ tag, ...count }))
    .toSorted((a, b) => (a.tag < b.tag ? -1 : 1))
}
