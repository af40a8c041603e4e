import type { Executor } from '../client.ts'
import { one } from '../rows.ts'
import { hooksQueries as q } from './queries.ts'

/** Removes up to `limit` events received before a time; gives how many it removed. */
export async function pruneByAge(db: Executor, before: Date, limit: number): Promise<number> {
  return (await one<{ removed: number }>(db, q.pruneByAge, [before, limit])).removed
}

/** Removes up to `limit` of the oldest events beyond the newest `keep`; gives how many it removed. */
export async function pruneByCount(db: Executor, keep: number, limit: number): Promise<number> {
  return (await one<{ removed: number }>(db, q.pruneByCount, [keep, limit])).removed
}

/** Removes counters of minutes before a time. */
export async function pruneActivity(db: Executor, before: Date): Promise<void> {
  await db.run(q.pruneActivity, [before])
}

/** Forgets forwarders not heard of since a time; those with the names given are heard of `now`. */
export async function pruneForwarders(
  db: Executor,
  connected: readonly string[],
  before: Date,
  now: Date,
): Promise<void> {
  await db.run(q.pruneForwarders, [connected, before, now])
}
