import type { Executor } from '../client.ts'
import { one, optional } from '../rows.ts'
import { opsQueries as q } from './queries.ts'
import type { SavedSettings } from './rows.ts'

export function readSettings(db: Executor): Promise<SavedSettings> {
  return one(db, q.readSettings, [])
}

/** Saves what is not null, and tells every instance. */
export async function writeSettings(db: Executor, settings: SavedSettings): Promise<void> {
  const { interval, tier1_model, tier2_model, tier3_model, dry_run } = settings
  await db.run(q.writeSettings, [interval, tier1_model, tier2_model, tier3_model, dry_run])
}

/** True for the one instance that may start the scheduled session now; none did since `since`. */
export async function claimSchedule(db: Executor, now: Date, since: Date): Promise<boolean> {
  return (await optional(db, q.claimSchedule, [now, since])) !== undefined
}

/** Whether the turn that was claimed last is the one of this time: its claim's answer may have been lost. */
export async function isScheduleClaimed(db: Executor, at: Date): Promise<boolean> {
  return (await one<{ readonly claimed: boolean }>(db, q.isScheduleClaimed, [at])).claimed
}
