import type { Database } from '../../db/client.ts'
import { destinationQueries, type DestinationTarget } from '../../db/hooks/send/destinations.ts'
import { endpointQueries, type EndpointKey } from '../../db/hooks/agents/endpoints.ts'
import { providerQueries, type Provider } from '../../db/hooks/receive/providers.ts'
import { settingsQueries } from '../../db/hooks/settings.ts'
import type { Log } from '../../kernel/log.ts'
import type { Metrics } from '../../kernel/metrics.ts'
import { repeat, reportsTo } from '../../kernel/repeat.ts'
import type { Clock } from '../../kernel/time.ts'
import type { RandomBytes } from '../../kernel/tokens.ts'
import { schemeNamed } from './receive/schemes/schemes.ts'
import { isSignedProvider } from './receive/schemes/provider-names.ts'
import type { SigningSecrets } from './receive/schemes/signing-secrets.ts'
import { configuredOf } from './receive/schemes/secrets.ts'

/** What the parts of the service are made from. */
export interface HooksParts {
  db: Database
  clock: Clock
  random: RandomBytes
  log: Log
  metrics: Metrics
}

/**
 * Providers, endpoints, destinations and settings in memory; NOTIFY and a slow poll keep them like
 * the database's.
 */
export type Registry = Awaited<ReturnType<typeof openRegistry>>

const POLL_MS = 5_000

/** Loads the registry and follows changes; throws `Unavailable` without a database. */
export async function openRegistry(
  { db, clock, random, log }: HooksParts,
  secrets: SigningSecrets,
) {
  let providers = new Map<string, Provider>()
  let problems = new Map<string, string>()
  let endpoints = new Map<string, EndpointKey>()
  let targets: readonly DestinationTarget[] = []
  let settings = await settingsQueries.readSettings(db, {})
  const fresh = random(12).toString('hex')
  const { name: installation } = await settingsQueries.nameInstallation(db, { fresh })
  let seen = ''
  const callbacks: (() => void)[] = []

  async function refresh() {
    // In parallel they would need a connection each, which at a start costs more than it saves.
    const rows = await providerQueries.listProviders(db, {})
    const keys = await endpointQueries.listEndpointKeys(db, {})
    const found = await destinationQueries.listTargets(db, {})
    const fresh = await settingsQueries.readSettings(db, {})
    problems = checkSecrets(rows, secrets, problems, log)
    const text = JSON.stringify([rows, [...problems], keys, found, fresh])
    endpoints = new Map(keys.map((key) => [key.token_hash.toString('hex'), key]))
    providers = new Map(rows.map((provider) => [provider.name, provider]))
    targets = found
    settings = fresh
    if (text === seen) return
    seen = text
    for (const callback of callbacks) callback()
  }

  await refresh()
  const reports = reportsTo(log, 'registry not refreshed', 'registry is refreshed again')
  const polls = repeat(clock, POLL_MS, 'registry', refresh, reports)
  await db.listen('hooks_config', () => void polls.now())

  return {
    provider: (name: string) => providers.get(name),
    /** The name of this installation, see `installation.ts`. */
    installation,
    /** The endpoint whose token has this hash. */
    endpointOf: (tokenHash: Buffer) => endpoints.get(tokenHash.toString('hex')),
    /** What events are sent to now: the destinations, and the replay jobs that send. */
    get targets() {
      return targets
    },
    /** The destinations that people have added. */
    get destinations() {
      return targets.filter(({ kind }) => kind === 'standing')
    },
    /** True when an alarm is set for some provider. */
    get hasAlarms() {
      return providers.values().some(({ watched }) => watched)
    },
    get settings() {
      return settings
    },
    /** Reads all again; awaited after a change of our own, so that the next request sees it. */
    refresh: polls.now,
    /** Calls back when a refresh found a change, also one by another instance. */
    onChange: (callback: () => void) => void callbacks.push(callback),
    close: polls.stop,
  }
}

/**
 * The problems of secrets that can't be read, which disable their providers. Each is logged once,
 * with what helps.
 */
function checkSecrets(
  providers: readonly Provider[],
  secrets: SigningSecrets,
  known: Map<string, string>,
  log: Log,
): Map<string, string> {
  const problems = new Map<string, string>()
  for (const row of providers) {
    const { name: provider, trust_mode, signing_secret } = row
    if (trust_mode !== 'signed' || configuredOf(secrets, provider) !== undefined) continue
    // One of the three that always exist may have no secret yet.
    if (isSignedProvider(provider) && signing_secret === null) continue
    if (schemeNamed(row.scheme)?.secret === 'none') continue
    const found = secrets.keyIn(row)
    if (!('problem' in found)) continue
    const { problem } = found
    problems.set(provider, problem)
    if (known.get(provider) === problem) continue
    const help = 'set GATEHOUSE_SECRET_KEY to the key that it was stored with, or rotate it'
    log.warn('signing secret not readable: the provider is disabled', { provider, problem, help })
  }
  return problems
}
