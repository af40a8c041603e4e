import Type from 'typebox'
import { databaseAnswers } from '../../db/server.ts'
import type { Database } from '../../db/client.ts'
import type { AlarmKind } from './alarms.ts'
import type { StatusMessage } from './status.ts'

/** hooks.md section 2, Health. */
export const Health = Type.Object({
  status: Type.Enum(['ok', 'degraded', 'error']),
  db: Type.Enum(['ok', 'error']),
  broker: Type.Enum(['ok', 'disabled', 'error']),
  database: Type.Enum(['ok', 'error']),
  version: Type.String(),
  /** Why it is degraded; only then. */
  reasons: Type.Optional(Type.Array(Type.String())),
})
export type Health = Type.Static<typeof Health>

/**
 * Asks the database, of which both `db` and `database` tell. Without the broker, and while an alarm
 * fires, webhooks still come in. Anybody may read the reasons, so they name no provider and no channel.
 */
export async function readHealth(
  db: Database,
  broker: Health['broker'],
  readStatus: () => Promise<StatusMessage>,
  version: string,
): Promise<Health> {
  const state = (await databaseAnswers(db)) ? 'ok' : 'error'
  const parts = { db: state, broker, database: state, version } as const
  if (state === 'error') return { status: 'error', ...parts }
  const reasons = reasonsOf(broker, await readStatus())
  return reasons.length === 0
    ? { status: 'ok', ...parts }
    : { status: 'degraded', ...parts, reasons: [...reasons] }
}

function reasonsOf(broker: Health['broker'], { providers }: StatusMessage): readonly string[] {
  const firing = (kind: AlarmKind): number =>
    providers.filter(({ alarms }) => alarms.includes(kind)).length
  const [silent, burst] = [firing('silent'), firing('burst')]
  return [
    ...(broker === 'error' ? ['the queue broker is out of reach'] : []),
    ...(silent > 0 ? [`no event for longer than expected: ${providersText(silent)}`] : []),
    ...(burst > 0 ? [`many rejected deliveries: ${providersText(burst)}`] : []),
  ]
}

function providersText(count: number): string {
  return count === 1 ? '1 provider' : `${count} providers`
}
