import type { Database } from '../../db/client.ts'
import { listEndpointKeys } from '../../db/hooks/endpoints.ts'
import { listSenders } from '../../db/hooks/providers.ts'
import type { EndpointKey, Sender, Settings } from '../../db/hooks/rows.ts'
import { readSettings } from '../../db/hooks/settings.ts'
import type { Clock } from '../../kernel/time.ts'
import { messageOf, type Log } from '../../kernel/log.ts'
import { repeat } from '../../kernel/repeat.ts'
import { readKeys, isSignedProvider, type SigningSecrets } from './secrets.ts'

/** Senders, endpoints and settings in memory, kept like the database's by NOTIFY and a slow poll. */
export interface Registry {
  sender(name: string): Sender | undefined
  /** True when an alarm of some provider is set. */
  readonly watches: boolean
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
  let senders = new Map<string, Sender>()
  const unreadable = new Map<string, string>()
  let endpoints = new Map<string, EndpointKey>()
  let settings = await readSettings(db)
  let seen = ''
  let asked = 0
  let taken = 0
  const callbacks: (() => void)[] = []

  async function refresh(): Promise<void> {
    const turn = ++asked
    // At once they would need a connection each, which at a start costs more than it saves.
    const rows = await listSenders(db)
    const keys = await listEndpointKeys(db)
    const fresh = await readSettings(db)
    // A read that began earlier must not bring back what a later one no longer found.
    if (turn < taken) return
    taken = turn
    for (const sender of rows) look(sender)
    const text = JSON.stringify([rows, [...unreadable], keys, fresh])
    endpoints = new Map(keys.map((key) => [key.token_hash.toString('hex'), key]))
    senders = new Map(rows.map((sender) => [sender.name, sender]))
    settings = fresh
    if (text === seen) return
    seen = text
    for (const callback of callbacks) callback()
  }
  /** A secret that can't be read disables its provider; said once, with what helps. */
  function look(sender: Sender): void {
    const { name, trust_mode } = sender
    if (trust_mode !== 'signed' || isSignedProvider(name)) return
    const keys = readKeys(secrets, sender)
    if (!('problem' in keys)) return void unreadable.delete(name)
    if (unreadable.get(name) !== keys.problem) {
      const help = 'set GATEHOUSE_SECRET_KEY to the key that it was stored with, or rotate it'
      log.warn('signing secret not readable: the provider is disabled', {
        provider: name,
        problem: keys.problem,
        help,
      })
    }
    unreadable.set(name, keys.problem)
  }

  await refresh()
  const polls = repeat(clock, POLL_MS, refresh, {
    fails: (error) => log.warn('registry not refreshed', { error: messageOf(error) }),
    works: () => log.info('registry is refreshed again'),
  })
  await db.listen('hooks_config', () => void polls.now())

  return {
    sender: (name) => senders.get(name),
    endpointOf: (tokenHash) => endpoints.get(tokenHash.toString('hex')),
    get watches() {
      return senders.values().some(({ watched }) => watched)
    },
    get settings() {
      return settings
    },
    refresh,
    onChange: (callback) => callbacks.push(callback),
    close: polls.stop,
  }
}
