import Type from 'typebox'
import type { Database } from '../../db/client.ts'
import type { ActiveProvider } from '../../db/hooks/providers.ts'
import { databaseAnswers } from '../../db/server.ts'
import { Unavailable } from '../../kernel/fault.ts'
import { messageOf, type Log } from '../../kernel/log.ts'
import type { Clock } from '../../kernel/time.ts'
import { alarmsOf, type AlarmBoard, type AlarmKind } from './alarms.ts'
import { readProviders } from './providers.ts'
import { mayDeliver, type SigningSecrets } from './secrets.ts'

/** A provider as the stream's `status` message has it. */
interface ProviderLine extends Pick<
  ActiveProvider,
  'name' | 'trust_mode' | 'enabled' | 'recent_count' | 'last_event_at'
> {
  /** The alarms that fire, of those that an operator has set. */
  readonly alarms: readonly AlarmKind[]
}

/** The stream's `status` message (hooks.md section 6), also what the dashboard shows. */
export interface StatusMessage {
  readonly connection: 'receiving' | 'idle'
  readonly generated_at: Date
  readonly providers: readonly ProviderLine[]
  readonly db: 'ok' | 'error'
  readonly broker: 'ok' | 'disabled' | 'error'
}

const RECEIVING_MS = 60_000

/**
 * Reads the present status at most once a second, however many ask; never throws. `fresh` reads it
 * anew: after a change, an answer from before it would be the last word until the next change.
 * `updateAlarms` gets every alarm that is set, each time.
 */
export function createStatusReader(
  db: Database,
  secrets: SigningSecrets,
  clock: Clock,
  log: Log,
  broker: () => StatusMessage['broker'],
  updateAlarms: AlarmBoard['update'],
): (fresh?: boolean) => Promise<StatusMessage> {
  let pending: Promise<StatusMessage> | undefined
  let readAt = Number.NEGATIVE_INFINITY
  let before: StatusMessage | undefined

  async function read(): Promise<StatusMessage> {
    const now = clock.now()
    try {
      const rows = await readProviders(db, now)
      const enabled = rows.filter((row) => mayDeliver(row, secrets))
      const alarms = enabled.flatMap((row) => alarmsOf(row, now))
      updateAlarms(alarms, now)
      const providers = rows.map((row): ProviderLine => {
        const { name, trust_mode, recent_count, last_event_at } = row
        const firing = alarms.filter(({ provider, fires }) => fires && provider === name)
        const kinds = firing.map(({ kind }) => kind)
        const isEnabled = enabled.includes(row)
        return { name, trust_mode, enabled: isEnabled, recent_count, last_event_at, alarms: kinds }
      })
      const last = Math.max(0, ...rows.map((row) => row.last_event_at?.getTime() ?? 0))
      const connection = now.getTime() - last <= RECEIVING_MS ? 'receiving' : 'idle'
      before = { connection, generated_at: now, providers, db: 'ok', broker: broker() }
      return before
    } catch (error) {
      // A database out of reach is in the log of the query's other callers; all else is a defect.
      if (!(error instanceof Unavailable)) {
        log.error('status not read', {
          error: messageOf(error),
          ...(error instanceof Error ? { stack: error.stack } : {}),
        })
      }
      return {
        providers: before?.providers ?? [],
        connection: 'idle',
        generated_at: now,
        db: 'error',
        broker: broker(),
      }
    }
  }

  return (fresh = false) => {
    const time = clock.elapsed()
    if (fresh || pending === undefined || time - readAt >= 1_000) {
      readAt = time
      pending = read()
    }
    return pending
  }
}

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
 * fires, webhooks still come in. Anybody may read the reasons, so they name no provider and no
 * channel.
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
