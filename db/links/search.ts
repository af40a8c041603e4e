import type { Executor } from '../client.ts'
import { many, optional } from '../rows.ts'
import { linksQueries as q } from './queries.ts'
import type { ListedLink, Visibility } from './rows.ts'

/**
 * Which links a list is made of: those of a user (`mine`), or of them the user's own, the co-owned or
 * the shared ones alone; all that the user may see (`visible`); or all there are (`every`).
 */
export type ListScope = 'mine' | 'primary' | 'co' | 'shared' | 'visible' | 'every'

/** A list of links, and what of it is wanted. */
export interface LinkFilter {
  readonly user: string
  readonly scope: ListScope
  readonly tag: string | undefined
  readonly visibility: Visibility | undefined
  /** Texts that must all stand in slug, title, url or tags, whatever their case. */
  readonly texts: readonly string[]
  /** Leaves out slugs that begin with this; '' leaves out none. */
  readonly butPrefix: string
}

/** Slugs from `after` (exclusive) to `until` (inclusive). */
export interface SlugRange {
  readonly after: string
  readonly until: string
}

/** The last slug of the next `rows` that a list looks through, or undefined when fewer are left. */
export async function linkWindowEnd(
  db: Executor,
  { user, scope, tag = '' }: LinkFilter,
  { after, until }: SlugRange,
  rows: number,
): Promise<string | undefined> {
  const args = [user, scope, tag, after, until, rows]
  return (await optional<{ readonly slug: string }>(db, q.linkWindowEnd, args))?.slug
}

/** Matching links by slug, each with its clicks since a day (`2026-01-31`). */
export function findLinks(
  db: Executor,
  { user, scope, tag = '', visibility, texts, butPrefix }: LinkFilter,
  { after, until }: SlugRange,
  since: string,
  limit: number,
): Promise<readonly ListedLink[]> {
  const patterns = texts.map((text) => `%${text.replaceAll(/[\\%_]/g, '\\$&')}%`)
  const where = [user, scope, tag, after, until, visibility ?? '', patterns, butPrefix]
  return many(db, q.findLinks, [...where, since, limit])
}
