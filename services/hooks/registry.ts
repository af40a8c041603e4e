import type { Database } from '../../db/client.ts'
import { endpointQueries, type EndpointKey } from '../../db/hooks/endpoints.ts'
import { providerQueries, type Provider } from '../../db/hooks/providers.ts'
import { settingsQueries, type Settings } from '../../db/hooks/settings.ts'
import type { Clock } from '../../kernel/time.ts'
import { messageOf, type Log } from '../../kernel/log.ts'
import { repeat } from '../../kernel/repeat.ts'
import { isSignedProvider, type SigningSecrets } from './secrets.ts'

/**
 * Providers, endpoints and settings in memory; NOTIFY and a slow poll keep them like the
 * database's.
 */
export interface Registry {
  provider(name: string): Provider | undefined
  /** True when an alarm is set for some provider. */
  readonly hasAlarms: boolean
  /** The endpoint whose token has this hash. */
  endpointOf(tokenHash: Buffer): EndpointKey | undefined
  readonly settings: Settings
  /** Reads all again; awaited after a change of our own, so that the next request sees it. */
  refresh(): Promise<void>
  /** Calls back when a refresh found a change, whoever made it. */
  onChange(callback: () => void): void
  close(): Promise<void>
}

const POLL_MS = 5_000

/** Loads the registry and follows changes; throws `Unavailable` without a database. */
export async function openRegistry(
  db: Database,
  secrets: SigningSecrets,
  clock: Clock,
  log: Log,
): Promise<Registry> {
  let providers = new Map<string, Provider>()
  const unreadable = new Map<string, string>()
  let endpoints = new Map<string, EndpointKey>()
  let settings = await settingsQueries.readSettings(db, {})
  let seen = ''
  let started = 0
  let applied = 0
  const callbacks: (() => void)[] = []

  async function refresh(): Promise<void> {
    const number = ++started
    // In parallel they would need a connection each, which at a start costs more than it saves.
    const rows = await providerQueries.listProviders(db, {})
    const keys = await endpointQueries.listEndpointKeys(db, {})
    const fresh = await settingsQueries.readSettings(db, {})
    // A refresh that began earlier must not bring back what a later one no longer found.
    if (number < applied) return
    applied = number
    for (const provider of rows) checkSecret(provider)
    const text = JSON.stringify([rows, [...unreadable], keys, fresh])
    endpoints = new Map(keys.map((key) => [key.token_hash.toString('hex'), key]))
    providers = new Map(rows.map((provider) => [provider.name, provider]))
    settings = fresh
    if (text === seen) return
    seen = text
    for (const callback of callbacks) callback()
  }

  /** A secret that can't be read disables its provider; logged once, with what helps. */
  function checkSecret({ name, trust_mode, signing_secret }: Provider): void {
    if (trust_mode !== 'signed' || isSignedProvider(name)) return
    const found = secrets.keyIn(signing_secret, name)
    if (!('problem' in found)) return void unreadable.delete(name)
    if (unreadable.get(name) !== found.problem) {
      const help = 'set GATEHOUSE_SECRET_KEY to the key that it was stored with, or rotate it'
      log.warn('signing secret not readable: the provider is disabled', {
        provider: name,
        problem: found.problem,
        help,
      })
    }
    unreadable.set(name, found.problem)
  }

  await refresh()
  const polls = repeat(clock, POLL_MS, refresh, {
    fails: (error) => log.warn('registry not refreshed', { error: messageOf(error) }),
    works: () => log.info('registry is refreshed again'),
  })
  await db.listen('hooks_config', () => void polls.now())

  return {
    provider: (name) => providers.get(name),
    endpointOf: (tokenHash) => endpoints.get(tokenHash.toString('hex')),
    get hasAlarms() {
      return providers.values().some(({ watched }) => watched)
    },
    get settings() {
      return settings
    },
    refresh,
    onChange: (callback) => callbacks.push(callback),
    close: polls.stop,
  }
}
