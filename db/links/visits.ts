import type { Executor } from '../client.ts'
import { many, one, optional } from '../rows.ts'
import { linksQueries as q } from './queries.ts'
import type { DayClicks, Suggestion, Target } from './rows.ts'
import type { User } from './users.ts'

/** What a visit needs of the link with exactly this slug. */
export function findTarget(db: Executor, slug: string): Promise<Target | undefined> {
  return optional(db, q.findTarget, [slug])
}

/** Whether a user is an owner or a recipient of a link. */
export async function mayVisit(db: Executor, link: string, user: string): Promise<boolean> {
  return (await one<{ readonly may: boolean }>(db, q.mayVisit, [link, user])).may
}

/** Links that the visitor may see, whose slug is one of `near` or begins with `prefix`. */
export function suggestLinks(
  db: Executor,
  near: readonly string[],
  prefix: string,
  visitor: User | undefined,
  limit: number,
): Promise<readonly Suggestion[]> {
  const isAdmin = visitor?.role === 'admin'
  return many(db, q.suggestLinks, [near, prefix, visitor?.id ?? null, isAdmin, limit])
}

/** Clicks that one process counted; it numbers its batches upwards. */
export interface ClickBatch {
  readonly writer: string
  readonly number: number
  readonly clicks: readonly (DayClicks & { readonly link_id: string })[]
}

/** Adds clicks to what is counted already, a batch once; those on links that are gone are left out. */
export async function saveClicks(
  db: Executor,
  { writer, number, clicks }: ClickBatch,
  at: Date,
): Promise<void> {
  await db.run(q.saveClicks, [writer, number, at, clicks])
}

/** Forgets who has written clicks last before a time. */
export async function forgetClickWriters(db: Executor, before: Date): Promise<void> {
  await db.run(q.forgetClickWriters, [before])
}

/** A link's clicks by day and kind, from a day (`2026-01-31`) on. */
export function listClicks(
  db: Executor,
  link: string,
  since: string,
  limit: number,
): Promise<readonly DayClicks[]> {
  return many(db, q.listClicks, [link, since, limit])
}
