import type { Executor } from '../client.ts'
import { one } from '../rows.ts'
import { hooksQueries as q } from './queries.ts'
import type { Settings } from './rows.ts'

export function readSettings(db: Executor): Promise<Settings> {
  return one(db, q.readSettings, [])
}

/** Writes the settings that are given; the others keep their value, whoever changes them meanwhile. */
export async function writeSettings(db: Executor, given: Partial<Settings>): Promise<void> {
  await db.run(q.writeSettings, [
    given.retention_max_age_days ?? null,
    given.retention_max_rows ?? null,
    given.sse_retry_ms ?? null,
    given.replay_default_target ?? null,
    given.replay_default_target !== undefined,
  ])
}
