import * as Type from '../../../kernel/schema.ts'
import type { Database } from '../../../db/client.ts'
import { ActiveProvider } from '../../../db/hooks/receive/providers.ts'
import { databaseAnswers } from '../../../db/server.ts'
import { Unavailable } from '../../../kernel/fault.ts'
import { messageOf } from '../../../kernel/log.ts'
import { alarmsOf, openAlarms, type AlarmKind, type ProviderAlarm } from '../receive/alarms.ts'
import { readProviders } from '../receive/providers/providers.ts'
import type { HooksParts, Registry } from '../registry.ts'
import type { SigningSecrets } from '../receive/schemes/signing-secrets.ts'
import { mayDeliver, secretStatus } from '../receive/schemes/secrets.ts'

/** A provider as the stream's `status` message has it. */
type ProviderLine = ReturnType<typeof toLine>

/** The stream's `status` message (hooks.md section 6), also what the dashboard shows. */
export interface StatusMessage {
  connection: 'receiving' | 'idle'
  generated_at: Date
  providers: readonly ProviderLine[]
  db: 'ok' | 'error'
  broker: 'ok' | 'disabled' | 'error'
}

const RECEIVING_MS = 60_000

/** Opens the status and the alarms; `changed` hears when an alarm has begun or ended. */
export function openStatus(
  parts: HooksParts,
  registry: Registry,
  secrets: SigningSecrets,
  broker: () => StatusMessage['broker'],
  changed: () => void,
) {
  const { db, clock, log } = parts
  const alarmBoard = openAlarms(parts, registry, () => void readStatus(), changed)
  let pending: Promise<StatusMessage> | undefined
  let readAt = Number.NEGATIVE_INFINITY
  let providers: readonly ProviderLine[] = []

  async function read(): Promise<StatusMessage> {
    const generated_at = clock.now()
    try {
      const rows = await readProviders(db, generated_at)
      const enabled = rows.filter((row) => mayDeliver(row, secrets))
      const alarms = enabled.flatMap((row) => alarmsOf(row, generated_at))
      alarmBoard.update(alarms, generated_at)
      providers = rows.map((row) => toLine(row, enabled.includes(row), alarms))
      const connection = connectionOf(rows, generated_at)
      return { connection, generated_at, providers, db: 'ok', broker: broker() }
    } catch (error) {
      // A database out of reach is in the log of the query's other callers; all else is a defect.
      if (!(error instanceof Unavailable)) {
        log.error('status not read', {
          error: messageOf(error),
          ...(error instanceof Error ? { stack: error.stack } : {}),
        })
      }
      return { connection: 'idle', generated_at, providers, db: 'error', broker: broker() }
    }
  }

  /**
   * Reads the status at most once a second, however many ask. Never throws. `fresh` reads it now:
   * after a change, an older status would be shown until the next change.
   */
  function readStatus(fresh = false): Promise<StatusMessage> {
    const time = clock.elapsed()
    if (fresh || pending === undefined || time - readAt >= 1_000) {
      readAt = time
      pending = read()
    }
    return pending
  }
  return { readStatus, close: alarmBoard.close }
}

function toLine(row: ActiveProvider, enabled: boolean, alarms: readonly ProviderAlarm[]) {
  const { name, trust_mode, recent_count, recent_rejections, last_event_at } = row
  const firing = alarms.filter(({ provider, fires }) => fires && provider === name)
  const kinds = firing.map(({ kind }) => kind)
  // The alarms that fire, of those that an operator has set.
  const counts = { recent_count, recent_rejections }
  return { name, trust_mode, enabled, ...counts, last_event_at, alarms: kinds }
}

function connectionOf(rows: readonly ActiveProvider[], now: Date) {
  const last = Math.max(0, ...rows.map((row) => row.last_event_at?.getTime() ?? 0))
  return now.getTime() - last <= RECEIVING_MS ? 'receiving' : 'idle'
}

const COUNTS = ['recent_count', 'recent_rejections', 'last_event_at'] as const

/** Whether a provider's deliveries can come in, and whether they did. */
export const ProviderHealth = Type.Object({
  ...Type.Pick(ActiveProvider, ['name', 'trust_mode']).properties,
  state: Type.Enum(['ready', 'alarm', 'disabled', 'secret_missing', 'broker_out_of_reach'], {
    description: 'alarm: deliveries can come in, and an alarm fires',
  }),
  ...Type.Pick(ActiveProvider, COUNTS).properties,
  /** Those that an operator has set. */
  alarms: Type.Array(
    Type.Object({ kind: Type.Enum(['silent', 'burst']), fires: Type.Boolean() }),
    {
      description:
        'silent: no event for longer than expected; burst: many deliveries with a wrong secret',
    },
  ),
})
export type ProviderHealth = Type.Static<typeof ProviderHealth>

/** The health of a provider as of a time. A disabled one raises no alarm. */
export function providerHealth(
  row: ActiveProvider,
  secrets: SigningSecrets,
  broker: StatusMessage['broker'],
  now: Date,
): ProviderHealth {
  const alarms = alarmsOf(row, now).map(({ kind, fires }) => {
    return { kind, fires: fires && mayDeliver(row, secrets) }
  })
  return {
    name: row.name,
    trust_mode: row.trust_mode,
    state: stateOf(row, secrets, broker, alarms),
    recent_count: row.recent_count,
    recent_rejections: row.recent_rejections,
    last_event_at: row.last_event_at,
    alarms,
  }
}

function stateOf(
  row: ActiveProvider,
  secrets: SigningSecrets,
  broker: StatusMessage['broker'],
  alarms: ProviderHealth['alarms'],
): ProviderHealth['state'] {
  if (secretStatus(row, secrets) === 'missing') return 'secret_missing'
  if (!row.enabled) return 'disabled'
  // Without a configured broker nothing reads the channel either.
  if (row.family === 'queue' && broker !== 'ok') return 'broker_out_of_reach'
  return alarms.some(({ fires }) => fires) ? 'alarm' : 'ready'
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

/** What health is read from. */
interface HealthParts {
  db: Database
  registry: Pick<Registry, 'destinations'>
  readStatus: () => Promise<StatusMessage>
}

/**
 * Asks the database, of which both `db` and `database` tell. Without the broker, and while an
 * alarm fires, webhooks still come in. Anybody may read the reasons, so they name no provider, no
 * channel and no destination.
 */
export async function readHealth(
  { db, registry, readStatus }: HealthParts,
  broker: Health['broker'],
  version: string,
): Promise<Health> {
  const state = (await databaseAnswers(db)) ? 'ok' : 'error'
  const parts = { db: state, broker, database: state, version } as const
  if (state === 'error') return { status: 'error', ...parts }
  const impaired = impairmentsOf(await readStatus(), registry)
  const outages = broker === 'error' ? ['the queue broker is out of reach'] : []
  const reasons = [...outages, ...countedReasons(impaired)]
  if (reasons.length === 0) return { status: 'ok', ...parts }
  return { status: 'degraded', ...parts, reasons }
}

/** Something that is not as an operator wants it; webhooks still come in. */
interface Impairment {
  why: string
  kind: 'provider' | 'destination'
}

const ALARM_REASONS: Readonly<Record<AlarmKind, string>> = {
  silent: 'no event for longer than expected',
  burst: 'many rejected deliveries',
}

function impairmentsOf(
  { providers }: StatusMessage,
  { destinations }: Pick<Registry, 'destinations'>,
): readonly Impairment[] {
  const kinds = Object.keys(ALARM_REASONS) as readonly AlarmKind[]
  const alarms = kinds.flatMap((kind) => {
    const firing = providers.filter(({ alarms: own }) => own.includes(kind))
    return firing.map(() => impairment(ALARM_REASONS[kind], 'provider'))
  })
  const failed = destinations.filter((one) => one.failed)
  return [...alarms, ...failed.map(() => impairment('disabled after failures', 'destination'))]
}

function impairment(why: string, kind: Impairment['kind']): Impairment {
  return { why, kind }
}

/** The reasons for anybody to read: how many are impaired, but not which. */
function countedReasons(all: readonly Impairment[]): readonly string[] {
  const groups = Map.groupBy(all, ({ why, kind }) => `${why}: ${kind}`)
  return [...groups].map(([, [first, ...more]]) => {
    const { why, kind } = first as Impairment
    const count = more.length + 1
    return `${why}: ${count} ${kind}${count === 1 ? '' : 's'}`
  })
}
