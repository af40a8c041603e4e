import type { Executor } from '../client.ts'
import { one } from '../rows.ts'
import { hooksQueries as q } from './queries.ts'
import type { Settings } from './rows.ts'

export function readSettings(db: Executor): Promise<Settings> {
  return one(db, q.readSettings, [])
}

export async function writeSettings(db: Executor, settings: Settings): Promise<void> {
  const { retention_max_age_days, retention_max_rows, sse_retry_ms, replay_default_target } =
    settings
  await db.run(q.writeSettings, [
    retention_max_age_days,
    retention_max_rows,
    sse_retry_ms,
    replay_default_target,
  ])
}
