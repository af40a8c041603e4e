import type { Executor } from '../client.ts'
import { many } from '../rows.ts'
import { linksQueries as q } from './queries.ts'
import type { Link, Tag, TagCount } from './rows.ts'

/** Makes `tags` the tags of a link. */
export async function writeTags(
  tx: Executor,
  slug: string,
  tags: readonly string[],
  isPublic: boolean,
): Promise<void> {
  await tx.run(q.writeTags, [slug, tags, isPublic])
}

/** Brings what owners and recipients see of the tags of links up to date with links, owners and shares. */
export async function writeHiddenTags(tx: Executor, slugs: readonly string[]): Promise<void> {
  if (slugs.length > 0) await tx.run(q.writeHiddenTags, [slugs])
}

/** Adds to the counters of tags; once in a transaction, so that writers don't wait for each other. */
export async function countTags(tx: Executor, changes: readonly TagCount[]): Promise<void> {
  if (changes.length > 0) await tx.run(q.countTags, [changes])
}

/** The tags of links that a user may see (null: all links), after a tag. */
export function listTags(
  db: Executor,
  user: string | null,
  after: string,
  limit: number,
): Promise<readonly Tag[]> {
  return user === null
    ? many(db, q.listTags, [after, limit])
    : many(db, q.listVisibleTags, [user, after, limit])
}

/** The links with a tag that a user may see (null: all links), after a slug. */
export function listTagLinks(
  db: Executor,
  tag: string,
  user: string | null,
  after: string,
  limit: number,
): Promise<readonly Link[]> {
  return user === null
    ? many(db, q.listTagLinks, [tag, after, limit])
    : many(db, q.listVisibleTagLinks, [tag, user, after, limit])
}
