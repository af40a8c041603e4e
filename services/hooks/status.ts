import type { Database } from '../../db/client.ts'
import { listProviders } from '../../db/hooks/providers.ts'
import type { Provider, TrustMode } from '../../db/hooks/rows.ts'
import type { Clock } from '../../kernel/clock.ts'
import { providerStatus } from './provider-status.ts'
import type { SigningSecrets } from './signing-secrets.ts'

/** The stream's `status` message (hooks.md section 6), also what the dashboard shows. */
export interface StatusMessage {
  readonly connection: 'receiving' | 'idle'
  readonly generated_at: Date
  readonly providers: readonly {
    readonly name: string
    readonly trust_mode: TrustMode
    readonly enabled: boolean
    /** Events of the last 24 hours. */
    readonly recent_count: number
    readonly last_event_at: Date | null
  }[]
  readonly db: 'ok' | 'error'
  readonly broker: 'ok' | 'disabled' | 'error'
}

const DAY_MS = 86_400_000
const RECEIVING_MS = 60_000

/** Start of the window that counts as recent. */
export function recentSince(now: Date): Date {
  return new Date(now.getTime() - DAY_MS)
}

/**
 * Reads the present status at most once a second, however many ask; never throws. `fresh` reads it
 * anew: after a change, an answer from before it would be the last word until the next change.
 */
export function createStatusReader(
  db: Database,
  secrets: SigningSecrets,
  clock: Clock,
  broker: () => StatusMessage['broker'],
): (fresh?: boolean) => Promise<StatusMessage> {
  let pending: Promise<StatusMessage> | undefined
  let readAt = 0
  let before: StatusMessage | undefined

  async function read(): Promise<StatusMessage> {
    const now = clock.now()
    try {
      before = statusOf(await listProviders(db, recentSince(now)), secrets, now, broker())
      return before
    } catch {
      // Whatever failed is in the log of the query's other callers; here it means: no database.
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
    const time = clock.now().getTime()
    if (fresh || pending === undefined || time - readAt >= 1_000) {
      readAt = time
      pending = read()
    }
    return pending
  }
}

/** The status that a list of providers amounts to. */
export function statusOf(
  providers: readonly Provider[],
  secrets: SigningSecrets,
  now: Date,
  broker: StatusMessage['broker'],
): StatusMessage {
  const last = Math.max(0, ...providers.map((provider) => provider.last_event_at?.getTime() ?? 0))
  return {
    connection: now.getTime() - last <= RECEIVING_MS ? 'receiving' : 'idle',
    generated_at: now,
    providers: providers.map((provider) => ({
      name: provider.name,
      trust_mode: provider.trust_mode,
      enabled: providerStatus(provider, secrets).enabled,
      recent_count: provider.recent_count,
      last_event_at: provider.last_event_at,
    })),
    db: 'ok',
    broker,
  }
}
