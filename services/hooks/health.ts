import { databaseAnswers } from '../../db/answers.ts'
import type { Database } from '../../db/client.ts'

/** hooks.md section 2, Health. */
export interface Health {
  readonly status: 'ok' | 'degraded' | 'error'
  readonly db: 'ok' | 'error'
  readonly broker: 'ok' | 'disabled' | 'error'
  readonly database: 'ok' | 'error'
  readonly version: string
}

/** Asks the database; `db` and `database` carry the same value. */
export async function readHealth(db: Database, version: string): Promise<Health> {
  const state = (await databaseAnswers(db)) ? 'ok' : 'error'
  return { status: state, db: state, broker: 'disabled', database: state, version }
}
