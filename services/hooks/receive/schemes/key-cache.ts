import type { KeyObject } from 'node:crypto'
import { unavailable } from '../../../../kernel/fault.ts'
import type { Log } from '../../../../kernel/log.ts'
import type { Outbound } from '../../../../kernel/net/outbound.ts'
import type { Clock } from '../../../../kernel/time.ts'

/** A key of a sender, and when it may be used. */
export interface PublicKey {
  key: KeyObject
  from?: Date
  until?: Date
}

/** Keys by their ids, or why there are none. */
export type Fetched = ReadonlyMap<string, PublicKey> | { problem: string }

/** Keys that are fetched together. */
export interface KeySet {
  /** What they are kept under. */
  name: string
  /** The provider that needs them: it asks for new names and ids once a minute at most. */
  source: string
  fetch: (network: Outbound) => Promise<Fetched>
}

/** The keys of senders; see `keepFetchedKeys`. */
export type FetchedKeys = ReturnType<typeof keepFetchedKeys>

interface Kept {
  keys: ReadonlyMap<string, PublicKey>
  since: number
}

const MAX_KEPT_MS = 60 * 60_000
const PAUSE_MS = 60_000
const MAX_SETS = 200

/**
 * Keeps keys for an hour. Deliveries that need the same keys at once share one request. A sender is
 * asked for what is not known at most once a minute per provider, because whoever knows the address
 * of a receiver can send ids that are made up.
 */
export function keepFetchedKeys({ get, post, clock, log }: Outbound & { clock: Clock; log: Log }) {
  const kept = new Map<string, Kept>()
  const running = new Map<string, Promise<Kept>>()
  /** When a provider last asked for something new, or when a known set was last renewed. */
  const asked = new Map<string, number>()

  async function ask({ name, source, fetch }: KeySet): Promise<Kept> {
    const fetched = await fetch({ get, post })
    if ('problem' in fetched) {
      log.warn('a key of a sender is not there', { provider: source, problem: fetched.problem })
      throw unavailable(NO_KEY, PAUSE_MS / 1_000)
    }
    const found = { keys: fetched, since: clock.elapsed() }
    keep(kept, name, found)
    return found
  }

  /** Whether enough time has passed since the last request of this kind; notes this one. */
  function mayAsk(limit: string): boolean {
    const last = asked.get(limit)
    if (last !== undefined && clock.elapsed() - last < PAUSE_MS) return false
    keep(asked, limit, clock.elapsed())
    return true
  }

  return {
    /**
     * The key with an id; undefined if the sender has none. Throws 503 where the sender can't be
     * asked now.
     */
    async find(set: KeySet, id: string): Promise<PublicKey | undefined> {
      const found = kept.get(set.name)
      const isFresh = found !== undefined && clock.elapsed() - found.since < MAX_KEPT_MS
      const key = isFresh ? found.keys.get(id) : undefined
      if (key !== undefined) return key
      let asking = running.get(set.name)
      if (asking === undefined) {
        // Made-up ids must not keep a provider from renewing the keys that it knows.
        const isRenewal = found !== undefined && !isFresh
        if (!mayAsk(isRenewal ? `keys ${set.name}` : `new ${set.source}`)) {
          if (isFresh) return undefined
          throw unavailable(NO_KEY, PAUSE_MS / 1_000)
        }
        asking = ask(set).finally(() => running.delete(set.name))
        running.set(set.name, asking)
      }
      const { keys } = await asking
      return keys.get(id)
    },
  }
}

const NO_KEY = "The sender's key can't be had now; nothing was stored. Send it again later."

/** Keeps a value as the newest one of a bounded map. */
function keep<V>(map: Map<string, V>, name: string, value: V): void {
  map.delete(name)
  map.set(name, value)
  const [oldest] = map.keys()
  if (map.size > MAX_SETS && oldest !== undefined) map.delete(oldest)
}
