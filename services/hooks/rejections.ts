import type { Database } from '../../db/client.ts'
import {
  forgetRejectionWriters,
  saveRejections,
  type RejectionBatch,
} from '../../db/hooks/rejections.ts'
import { pruneRejections } from '../../db/hooks/retention.ts'
import type { Rejection } from '../../db/hooks/rows.ts'
import type { Clock } from '../../kernel/time.ts'
import { messageOf, type Log } from '../../kernel/log.ts'
import type { Metrics } from '../../kernel/metrics.ts'
import { redactAddress } from '../../kernel/net/addresses.ts'
import { repeat } from '../../kernel/repeat.ts'
import type { RandomBytes } from '../../kernel/token-hash.ts'

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
const DAY_MS = 86_400_000

type Minute = { provider: string; minute: Date; refused: number }
type Total = { provider: string; status: number; total: number; last_at: Date }

export interface RejectionsOptions {
  readonly db: Database
  readonly clock: Clock
  readonly random: RandomBytes
  readonly log: Log
  readonly metrics: Metrics
}

export async function openRejections(options: RejectionsOptions): Promise<Rejections> {
  const { db, clock, random, log, metrics } = options
  const writer = random(16).toString('hex')
  await forgetRejectionWriters(db, new Date(clock.now().getTime() - DAY_MS))
  const counter = metrics.counter(
    'gatehouse_hooks_rejections',
    'Deliveries refused, by provider and status.',
  )
  let rows: Omit<Rejection, 'id'>[] = []
  let totals = new Map<string, Total>()
  let minutes = new Map<string, Minute>()
  /** What is being written. After a lost answer it may be written: it is sent again as it is. */
  let sent: RejectionBatch | undefined
  let batches = 0
  let added = 0

  async function send(): Promise<void> {
    if (sent === undefined) return
    await saveRejections(db, sent, clock.now())
    added += sent.rows.length
    sent = undefined
  }

  async function write(): Promise<void> {
    await send()
    if (totals.size > 0) {
      const counts = { totals: [...totals.values()], minutes: [...minutes.values()] }
      sent = { writer, number: ++batches, rows, ...counts }
      rows = []
      totals = new Map()
      minutes = new Map()
      await send()
    }
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

  function count(provider: string, status: number, at: Date): void {
    const key = `${provider} ${status}`
    const before = totals.get(key)
    const last_at = before !== undefined && before.last_at > at ? before.last_at : at
    totals.set(key, { provider, status, total: (before?.total ?? 0) + 1, last_at })
  }

  function countMinute(provider: string, at: Date): void {
    const minute = new Date(Math.floor(at.getTime() / MINUTE_MS) * MINUTE_MS)
    const key = `${provider} ${minute.getTime()}`
    minutes.set(key, { provider, minute, refused: (minutes.get(key)?.refused ?? 0) + 1 })
  }

  const flushes = repeat(clock, FLUSH_MS, write, {
    fails: (error) =>
      log.warn('rejections not saved', { error: messageOf(error), rows: rows.length }),
    works: () => log.info('rejections are saved again'),
  })

  return {
    record({ provider, status, client, reason, at, wrongSecret = false }) {
      counter.add({ provider, status: String(status) })
      count(provider, status, at)
      if (wrongSecret) countMinute(provider, at)
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
