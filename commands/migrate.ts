import type { Database } from '../db/client.ts'
import { migrate } from '../db/migrate.ts'
import { DONE, type Output } from './output.ts'

/** `gatehouse migrate`: brings the database up to this program's schema and says what it did. */
export async function runMigrate(db: Database, output: Output): Promise<number> {
  const applied = await migrate(db)
  for (const name of applied) output.out(`applied ${name}`)
  if (applied.length === 0) output.out('nothing to apply')
  return DONE
}
