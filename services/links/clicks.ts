import type { Database } from '../../db/client.ts'
import type { ClickKind } from '../../db/links/rows.ts'
import { saveClicks } from '../../db/links/visits.ts'
import type { Clock } from '../../kernel/clock.ts'
import { messageOf, type Log } from '../../kernel/log.ts'

/** Clicks on their way into the database. */
export interface Clicks {
  count(link: string, kind: ClickKind, at: Date): void
  /** Writes what is counted; rejects when it can't, and then keeps it. */
  flush(): Promise<void>
  /** Writes the rest, and no more afterwards. */
  close(): Promise<void>
}

const FLUSH_MS = 1_000
const DAY_MS = 86_400_000

/** Counts in memory and writes once a second: a visit waits for no database. */
export function openClicks(db: Database, clock: Clock, log: Log): Clicks {
  /** Clicks by link, kind and day. */
  let waiting = new Map<string, number>()
  let flushing = Promise.resolve()

  function add(key: string, by: number): void {
    waiting.set(key, (waiting.get(key) ?? 0) + by)
  }

  async function write(): Promise<void> {
    if (waiting.size === 0) return
    const batch = waiting
    waiting = new Map()
    try {
      await saveClicks(db, [...batch].map(rowOf))
    } catch (error) {
      for (const [key, clicks] of batch) add(key, clicks)
      throw error
    }
  }

  function flush(): Promise<void> {
    const next = flushing.then(write)
    flushing = next.catch(() => undefined)
    return next
  }

  function report(error: unknown): void {
    log.warn('clicks not written, kept for the next try', { error: messageOf(error) })
  }

  const stop = clock.every(FLUSH_MS, () => void flush().catch(report))
  return {
    count: (link, kind, at) => add(`${link} ${kind} ${Math.floor(at.getTime() / DAY_MS)}`, 1),
    flush,
    async close() {
      stop()
      await flush().catch(report)
    },
  }
}

function rowOf([key, clicks]: readonly [string, number]) {
  const [link_id = '', kind = '', day = ''] = key.split(' ')
  const date = new Date(Number(day) * DAY_MS).toISOString().slice(0, 10)
  return { link_id, kind: kind as ClickKind, day: date, clicks }
}
