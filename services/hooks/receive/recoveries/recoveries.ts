import type { Database } from '../../../../db/client.ts'
import { providerQueries, type Provider } from '../../../../db/hooks/receive/providers.ts'
import {
  recoveryQueries as q,
  type Recovery,
  type RecoveryCount,
} from '../../../../db/hooks/receive/recoveries.ts'
import type { Outbound } from '../../../../kernel/net/outbound.ts'
import { MAX_LOOK_MS } from './api.ts'
import type { FailedDelivery, Found, Receivers, Search } from './found.ts'
import { recoverFromGithub } from './github.ts'
import type { Source } from './sources.ts'
import { recoverFromStripe } from './stripe.ts'

/** The longest that a sender keeps what it failed to deliver; most keep less. */
const KEPT_MS = 30 * 24 * 3_600_000

/** One look at a sender. */
export interface Look extends Pick<Search, 'isDryRun' | 'maxRefusals'> {
  source: Source
  /** The sender's API. */
  url: URL
  token: string
  /** Our public address. */
  baseUrl: string
  /** What failed before is left alone; undefined: whatever the sender still knows. */
  since: Date | undefined
  signal: AbortSignal
}

/** What a look needs. */
interface RecoveryTools extends Outbound {
  db: Database
  now: () => Date
}

/** Looks up what a sender failed to deliver, and asks for it. Throws a `Fault` if it can't look. */
export async function lookAt(tools: RecoveryTools, look: Look): Promise<Found> {
  const { db, now, get, post } = tools
  const { source, url, token, baseUrl, isDryRun, maxRefusals } = look
  const signal = AbortSignal.any([look.signal, AbortSignal.timeout(MAX_LOOK_MS)])
  const api = { get, post, url, token, now, signal }
  const search = {
    receivers: await receiversAt(db, baseUrl),
    since: look.since ?? new Date(now().getTime() - KEPT_MS),
    isDryRun,
    maxRefusals,
  }
  if (source.sender === 'github') return recoverFromGithub(api, source.target, search)
  return recoverFromStripe(api, search, async (provider, ids) => {
    const missing = await q.listMissing(db, { provider, ids })
    return missing.map(({ id }) => id)
  })
}

async function receiversAt(db: Database, baseUrl: string): Promise<Receivers> {
  const rows = await providerQueries.listProviders(db, {})
  const webhooks = rows.filter(({ trust_mode, enabled }) => enabled && trust_mode !== 'queue')
  return { baseUrl, providers: webhooks.map(({ name }) => name) }
}

/** How many deliveries of each provider failed, and what became of them. */
export function countsOf({ providers, deliveries }: Found): readonly RecoveryCount[] {
  return [...new Set(providers)].map((provider) => {
    const failed = deliveries.filter((one) => one.provider === provider)
    const count = (wanted: FailedDelivery['outcome']): number =>
      failed.filter(({ outcome }) => outcome === wanted).length
    return {
      provider,
      failed: failed.length,
      redelivered: count('redelivered'),
      asked: count('asked for'),
      left: count('not asked for'),
    }
  })
}

/** Such as "3 failed at the sender, redelivered". */
export function describeCount({ failed, redelivered, asked, left }: RecoveryCount): string {
  if (failed === 0) return 'none failed at the sender'
  const known = `${failed} failed at the sender`
  if (redelivered === failed) return `${known}, redelivered`
  const parts = [
    redelivered > 0 && `${redelivered} redelivered`,
    asked > 0 && `${asked} asked for again`,
    left > 0 && `${left} not asked for`,
  ]
  return [known, ...parts.filter((part) => part !== false)].join(', ')
}

/** What the newest look at a sender says of a provider. */
export interface ProviderRecovery extends Omit<Recovery, 'counts' | 'ended_at'> {
  at: Date
  /** Null where the sender was not asked about this provider. */
  text: string | null
}

/** What the newest looks say of a provider. */
export function recoveriesOf(
  rows: readonly Recovery[],
  { name, scheme }: Pick<Provider, 'name' | 'scheme'>,
): readonly ProviderRecovery[] {
  return rows.flatMap(({ source, ended_at: at, problem, counts }) => {
    const count = counts.find(({ provider }) => provider === name)
    // A look that failed may not know any provider: those of the sender's scheme show it.
    const isSender = source.split(':')[0] === scheme
    if (count === undefined && !(isSender && problem !== null)) return []
    return [{ source, at, problem, text: count === undefined ? null : describeCount(count) }]
  })
}
