import type { Database } from '../../db/client.ts'
import { saveRejections } from '../../db/hooks/rejections.ts'
import { pruneRejections } from '../../db/hooks/retention.ts'
import type { Rejection } from '../../db/hooks/rows.ts'
import type { Clock } from '../../kernel/clock.ts'
import { messageOf, type Log } from '../../kernel/log.ts'
import type { Metrics } from '../../kernel/metrics.ts'
import { redactAddress } from '../../kernel/peers.ts'
import { repeat } from '../../kernel/repeat.ts'

/** Keeps refused deliveries (401, 403, 413): counted all, listed the newest, never their payload. */
export interface Rejections {
  record(rejection: {
    provider: string
    status: 401 | 403 | 413
    client: string
    reason: string
    at: Date
    /** Refused for its signature or token: what the alarm "burst" counts. */
    wrongSecret?: boolean
  }): void
  flush(): Promise<void>
  close(): Promise<void>
}

/** Rows kept from one flush to the next: a flood of refusals costs one small statement a second. */
const KEPT = 200
const FLUSH_MS = 1_000

/** Rows that the table keeps, and how many may be added before it is cut back to that. */
export const REJECTIONS_KEPT = 10_000
const ADDED_AT_MOST = 1_000

const MINUTE_MS = 60_000

type Minute = { provider: string; minute: Date; refused: number }
type Total = { provider: string; status: number; total: number; last_at: Date }

export function createRejections(
  db: Database,
  clock: Clock,
  log: Log,
  metrics: Metrics,
): Rejections {
  const counter = metrics.counter(
    'gatehouse_hooks_rejections',
    'Deliveries refused, by provider and status.',
  )
  let rows: Omit<Rejection, 'id'>[] = []
  let totals = new Map<string, Total>()
  let minutes = new Map<string, Minute>()
  let added = 0

  async function write(): Promise<void> {
    if (totals.size === 0) return
    const [keptRows, keptTotals, keptMinutes] = [rows, totals, minutes]
    rows = []
    totals = new Map()
    minutes = new Map()
    try {
      await saveRejections(db, keptRows, [...keptTotals.values()], [...keptMinutes.values()])
    } catch (error) {
      for (const total of keptTotals.values()) count(total)
      for (const minute of keptMinutes.values()) countMinute(minute)
      rows = [...keptRows, ...rows].slice(-KEPT)
      throw error
    }
    added += keptRows.length
    if (added >= ADDED_AT_MOST) await prune()
  }

  /** A flood must not wait for the hourly run: it would add 720,000 rows until then. */
  async function prune(): Promise<void> {
    added = 0
    try {
      await pruneRejections(db, REJECTIONS_KEPT)
    } catch (error) {
      log.warn('rejections not pruned', { error: messageOf(error) })
    }
  }

  function count({ provider, status, total, last_at }: Total): void {
    const key = `${provider} ${status}`
    const sum = totals.get(key)
    const last = sum !== undefined && sum.last_at > last_at ? sum.last_at : last_at
    totals.set(key, { provider, status, total: (sum?.total ?? 0) + total, last_at: last })
  }

  function countMinute({ provider, minute, refused }: Minute): void {
    const key = `${provider} ${minute.getTime()}`
    minutes.set(key, { provider, minute, refused: (minutes.get(key)?.refused ?? 0) + refused })
  }

  const flushes = repeat(clock, FLUSH_MS, write, {
    fails: (error) =>
      log.warn('rejections not saved', { error: messageOf(error), rows: rows.length }),
    works: () => log.info('rejections are saved again'),
  })

  return {
    record({ provider, status, client, reason, at, wrongSecret = false }) {
      counter.add({ provider, status: String(status) })
      count({ provider, status, total: 1, last_at: at })
      if (wrongSecret) {
        const minute = new Date(Math.floor(at.getTime() / MINUTE_MS) * MINUTE_MS)
        countMinute({ provider, minute, refused: 1 })
      }
      rows.push({ at, provider, status, source: redactAddress(client), reason })
      if (rows.length > KEPT) rows.shift()
    },
    flush: flushes.now,
    async close() {
      await flushes.now()
      await flushes.stop()
    },
  }
}
