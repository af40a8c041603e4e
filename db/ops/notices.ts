import type { Executor } from '../client.ts'
import { one, optional } from '../rows.ts'
import { opsQueries as q } from './queries.ts'
import type { Notice } from './rows.ts'

/** The next notice that is due, taken for one try. */
export function claimNotice(db: Executor, now: Date): Promise<Notice | undefined> {
  return optional(db, q.claimNotice, [now])
}

/** How many events of a session are told, and whether the same words of a service are. */
export function countTold(
  db: Executor,
  session: number,
  service: string | null,
  message: string,
): Promise<{ readonly notices: number; readonly same: boolean }> {
  return one(db, q.countTold, [session, service, message])
}

/** Takes back the notice of an event that was not sent yet. */
export async function withdrawNotice(db: Executor, event: number): Promise<void> {
  await db.run(q.withdrawNotice, [event])
}

/** Notes that a notice has been taken. */
export async function finishNotice(db: Executor, id: number, at: Date): Promise<void> {
  await db.run(q.finishNotice, [id, at])
}

/** Forgets notices from before a time. */
export async function pruneNotices(db: Executor, before: Date): Promise<void> {
  await db.run(q.pruneNotices, [before])
}
