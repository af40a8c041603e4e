import type { Executor } from '../client.ts'
import { optional } from '../rows.ts'
import { opsQueries as q } from './queries.ts'
import type { Notice } from './rows.ts'

/** The next notice that is due, taken for one try. */
export function claimNotice(db: Executor, now: Date): Promise<Notice | undefined> {
  return optional(db, q.claimNotice, [now])
}

/** Notes that a notice has been taken. */
export async function finishNotice(db: Executor, id: number, at: Date): Promise<void> {
  await db.run(q.finishNotice, [id, at])
}

/** Forgets notices from before a time. */
export async function pruneNotices(db: Executor, before: Date): Promise<void> {
  await db.run(q.pruneNotices, [before])
}
