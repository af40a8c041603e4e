import type { Database, Executor } from '../../db/client.ts'
import type { Link } from '../../db/links/links.ts'
import { listQueries } from '../../db/links/lists.ts'
import { tagQueries as q, type Tag, type TagCount } from '../../db/links/tags.ts'
import type { User } from '../../db/links/users.ts'
import { linksFault } from './faults.ts'
import { listSeenBy } from './lists.ts'

/** What a link adds to the counters of tags. */
export type Tagged = Pick<Link, 'tags' | 'visibility'>

/** The tags of links that the caller may see, after a tag; admins see all. */
export function listTags(
  db: Database,
  { id: user, role }: User,
  after: string,
  limit: number,
): Promise<readonly Tag[]> {
  return role === 'admin'
    ? q.listTags(db, { after, limit })
    : q.listVisibleTags(db, { user, after, limit })
}

/**
 * The links with a tag that the caller may see, after a slug. A tag without any such link is 404,
 * like a tag that does not exist, on every page of its list.
 */
export async function listTagLinks(
  db: Database,
  visitor: User,
  tag: string,
  after: string,
  limit: number,
): Promise<readonly Link[]> {
  const search = { list: listSeenBy(visitor), user: visitor.id, tag }
  const links = await listQueries.listLinks(db, { ...search, after, limit })
  if (links.length > 0) return links
  const [any] = await listQueries.listLinks(db, { ...search, after: '', limit: 1 })
  if (any === undefined) throw linksFault('NOT_FOUND', 'tag not found')
  return []
}

/** Brings hidden_tags up to date with owners, shares and tags of links. */
export async function writeHiddenTags(tx: Executor, slugs: readonly string[]): Promise<void> {
  if (slugs.length > 0) await q.writeHiddenTags(tx, { slugs })
}

/**
 * Counts the tags of links before and after a change. Called once in a transaction: a second call
 * could lock counters in another order than other writers, and deadlock.
 */
export async function countTags(
  tx: Executor,
  before: readonly Tagged[],
  after: readonly Tagged[],
): Promise<void> {
  const counts = tagCounts(before, after)
  if (counts.length > 0) await q.countTags(tx, { counts })
}

/** The changes of counters, each tag once, sorted. */
function tagCounts(before: readonly Tagged[], after: readonly Tagged[]): readonly TagCount[] {
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
