import type { Executor } from '../client.ts'
import { one } from '../rows.ts'
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
