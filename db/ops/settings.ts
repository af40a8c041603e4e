import type { Executor } from '../client.ts'
import { one, optional } from '../rows.ts'
import { opsQueries as q } from './queries.ts'

/** True for the one instance that may start the scheduled session now; none did since `since`. */
export async function claimSchedule(db: Executor, now: Date, since: Date): Promise<boolean> {
  return (await optional(db, q.claimSchedule, [now, since])) !== undefined
}

/** Whether the turn that was claimed last is the one of this time: its claim's answer may have been lost. */
export async function isScheduleClaimed(db: Executor, at: Date): Promise<boolean> {
  return (await one<{ readonly claimed: boolean }>(db, q.isScheduleClaimed, [at])).claimed
}
