import type { Database } from '../../db/client.ts'
import { listEndpointKeys } from '../../db/hooks/endpoints.ts'
import { listSenders } from '../../db/hooks/providers.ts'
import type { EndpointKey, Sender, Settings } from '../../db/hooks/rows.ts'
import { readSettings } from '../../db/hooks/settings.ts'
import type { Clock } from '../../kernel/clock.ts'
import { messageOf, type Log } from '../../kernel/log.ts'

/** Senders, endpoints and settings in memory, kept like the database's by NOTIFY and a slow poll. */
export interface Registry {
  sender(name: string): Sender | undefined
  /** The endpoint whose token has this hash. */
  endpointOf(tokenHash: Buffer): EndpointKey | undefined
  readonly settings: Settings
  /** Reads all again; awaited after a change of our own, so that the next request sees it. */
  refresh(): Promise<void>
  /** Calls back when a refresh found a change, whoever made it. */
  onChange(callback: () => void): void
  close(): void
}

const POLL_MS = 5_000

/** Loads the registry and follows changes; throws `Unavailable` without a database. */
export async function openRegistry(db: Database, clock: Clock, log: Log): Promise<Registry> {
  let senders = new Map<string, Sender>()
  let endpoints = new Map<string, EndpointKey>()
  let settings = await readSettings(db)
  let known = ''
  let asked = 0
  let taken = 0
  const callbacks: (() => void)[] = []

  async function refresh(): Promise<void> {
    const turn = ++asked
    const all = [listSenders(db), listEndpointKeys(db), readSettings(db)] as const
    const [rows, keys, fresh] = await Promise.all(all)
    // A read that began earlier must not bring back what a later one no longer found.
    if (turn < taken) return
    taken = turn
    const text = JSON.stringify([rows, keys, fresh])
    endpoints = new Map(keys.map((key) => [key.token_hash.toString('hex'), key]))
    senders = new Map(rows.map((row) => [row.name, row]))
    settings = fresh
    if (text === known) return
    known = text
    for (const callback of callbacks) callback()
  }
  function follow(): void {
    refresh().catch((error: unknown) =>
      log.warn('registry not refreshed', { error: messageOf(error) }),
    )
  }

  await refresh()
  await db.listen('hooks_config', follow)
  const stop = clock.every(POLL_MS, follow)

  return {
    sender: (name) => senders.get(name),
    endpointOf: (tokenHash) => endpoints.get(tokenHash.toString('hex')),
    get settings() {
      return settings
    },
    refresh,
    onChange: (callback) => callbacks.push(callback),
    close: stop,
  }
}
