import Type from 'typebox'
import { databaseAnswers } from '../../db/answers.ts'
import type { Database } from '../../db/client.ts'
import type { StatusMessage } from './status.ts'

/** hooks.md section 2, Health. */
export const Health = Type.Object({
  status: Type.Enum(['ok', 'degraded', 'error']),
  db: Type.Enum(['ok', 'error']),
  broker: Type.Enum(['ok', 'disabled', 'error']),
  database: Type.Enum(['ok', 'error']),
  version: Type.String(),
})
export type Health = Type.Static<typeof Health>

/**
 * Asks the database, of which both `db` and `database` tell. Without the broker, and while an alarm
 * fires, webhooks still come in.
 */
export async function readHealth(
  db: Database,
  broker: Health['broker'],
  readStatus: () => Promise<StatusMessage>,
  version: string,
): Promise<Health> {
  const state = (await databaseAnswers(db)) ? 'ok' : 'error'
  const impaired = broker === 'error' || (state === 'ok' && alarmFires(await readStatus()))
  const status = state === 'ok' && impaired ? 'degraded' : state
  return { status, db: state, broker, database: state, version }
}

function alarmFires({ providers }: StatusMessage): boolean {
  return providers.some(({ alarms }) => alarms.length > 0)
}
