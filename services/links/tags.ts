import type { Database } from '../../db/client.ts'
import type { Link, Tag, TagCount, Visibility } from '../../db/links/rows.ts'
import type { User } from '../../db/links/users.ts'
import { listTagLinks, listTags } from '../../db/links/tags.ts'
import { refusal, type Refusal } from './refusal.ts'

/** The tags of links that the caller may see, after a tag; admins see all. */
export function tagsFor(
  db: Database,
  caller: User,
  after: string,
  limit: number,
): Promise<readonly Tag[]> {
  return listTags(db, scopeOf(caller), after, limit)
}

/**
 * The links with a tag that the caller may see, after a slug. A tag without any such link is like one
 * that does not exist, on every page of its list.
 */
export async function linksTagged(
  db: Database,
  caller: User,
  tag: string,
  after: string,
  limit: number,
): Promise<readonly Link[] | Refusal> {
  const links = await listTagLinks(db, tag, scopeOf(caller), after, limit)
  if (links.length > 0) return links
  const any = await listTagLinks(db, tag, scopeOf(caller), '', 1)
  return any.length > 0 ? [] : refusal('NOT_FOUND', 'tag not found')
}

/** Whose links count: null for everybody's. */
function scopeOf({ role, id }: User): string | null {
  return role === 'admin' ? null : id
}

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
