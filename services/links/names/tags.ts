import type { Database, Executor } from '../../../db/client.ts'
import type { Link } from '../../../db/links/names/links.ts'
import { listQueries } from '../../../db/links/names/lists.ts'
import { tagQueries as q } from '../../../db/links/names/tags.ts'
import { notFound } from '../../../kernel/fault.ts'
import { listSeenBy, type Slice } from './lists/lists.ts'
import type { Caller } from '../people/users/groups.ts'

/** What a link adds to the counters of tags. */
export type Tagged = Pick<Link, 'tags' | 'visibility'>

/** The tags of links that the caller may see; admins see all. */
export function listTags(db: Database, caller: Caller, slice: Slice) {
  if (caller.role === 'admin') return q.listTags(db, slice)
  return q.listVisibleTags(db, { users: caller.ids, ...slice })
}

/** The links with a tag that the caller may see. */
export async function listTagLinks(db: Database, visitor: Caller, tag: string, slice: Slice) {
  const search = { list: listSeenBy(visitor), users: visitor.ids, tag }
  const links = await listQueries.listLinks(db, { ...search, ...slice })
  if (links.length === 0) await checkTag(db, visitor, tag)
  return links
}

/**
 * A tag without links that the visitor may see is 404 on every page of its list, like a tag that
 * does not exist.
 */
export async function checkTag(db: Database, visitor: Caller, tag: string): Promise<void> {
  const list = { list: listSeenBy(visitor), users: visitor.ids, tag }
  const { links } = await listQueries.countLinks(db, { ...list, max: 1 })
  if (links === 0) throw notFound('tag not found')
}

/** Brings hidden_tags up to date with owners, shares and tags of links. */
export async function writeHiddenTags(tx: Executor, slugs: readonly string[]) {
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
  const counted = (links: readonly Tagged[], change: 1 | -1) =>
    links.map(({ tags, visibility }) => ({ tags, visibility, change }))
  const links = [...counted(before, -1), ...counted(after, 1)]
  if (links.some(({ tags }) => tags.length > 0)) await q.countTags(tx, { links })
}
