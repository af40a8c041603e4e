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

/** Asks the database, of which both `db` and `database` tell; without the broker webhooks still come in. */
export async function readHealth(
  db: Database,
  broker: Health['broker'],
  version: string,
): Promise<Health> {
  const state = (await databaseAnswers(db)) ? 'ok' : 'error'
  const status = state === 'ok' && broker === 'error' ? 'degraded' : state
  return { status, db: state, broker, database: state, version }
}
