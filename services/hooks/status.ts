import type { Database } from '../../db/client.ts'
import { listProviders } from '../../db/hooks/providers.ts'
import type { Provider, TrustMode } from '../../db/hooks/rows.ts'
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

/** Reads the present status; throws `Unavailable` when the database is out of reach. */
export async function readStatus(db: Database, secrets: SigningSecrets, now: Date): Promise<StatusMessage> {
  return statusOf(await listProviders(db, recentSince(now)), secrets, now)
}

/** The status that a list of providers amounts to. */
export function statusOf(providers: readonly Provider[], secrets: SigningSecrets, now: Date): StatusMessage {
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
    broker: 'disabled',
  }
}

/** What is still true when the database can't be asked. */
export function statusWithoutDatabase(before: StatusMessage | undefined, now: Date): StatusMessage {
  return {
    connection: 'idle',
    providers: before?.providers ?? [],
    broker: before?.broker ?? 'disabled',
    generated_at: now,
    db: 'error',
  }
}
