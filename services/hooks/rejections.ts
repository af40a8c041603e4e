import type { Database } from '../../db/client.ts'
import { rejectionQueries as q, type Rejection } from '../../db/hooks/rejections.ts'
import { messageOf, type Log } from '../../kernel/log.ts'
import type { Metrics } from '../../kernel/metrics.ts'
import { redactAddress } from '../../kernel/net/addresses.ts'
import { startNumberedBatches } from '../../kernel/repeat.ts'
import type { Clock } from '../../kernel/time.ts'
import type { RandomBytes } from '../../kernel/tokens.ts'

/**
 * Keeps rejected deliveries (401, 403, 413): counts all, lists the newest, never keeps a payload.
 */
export interface Rejections {
  record(rejection: {
    provider: string
    status: 401 | 403 | 413
    client: string
    reason: string
    at: Date
    /** Its signature or token was wrong: the alarm "burst" counts these. */
    wrongSecret?: boolean
  }): void
  flush(): Promise<void>
  close(): Promise<void>
}

/**
 * Rows kept from one flush to the next: a flood of rejections costs one small statement a second.
 */
const MAX_ROWS_PER_FLUSH = 200

/** Rows that the table keeps, and how many may be added before it is cut back to that. */
export const MAX_REJECTIONS = 10_000
const MAX_ADDED = 1_000

const MINUTE_MS = 60_000
const DAY_MS = 86_400_000

/** What gathers between two flushes. */
interface Gathered {
  /** The newest. */
  readonly rows: Omit<Rejection, 'id'>[]
  /** All of them, by provider and status. */
  readonly counts: Map<string, { provider: string; status: number; total: number; last_at: Date }>
  /** Those with a wrong signature or token, by provider and minute. */
  readonly minutes: Map<string, { provider: string; minute: Date; rejected: number }>
}

export interface RejectionsOptions {
  readonly db: Database
  readonly clock: Clock
  readonly random: RandomBytes
  readonly log: Log
  readonly metrics: Metrics
}

export async function openRejections(options: RejectionsOptions): Promise<Rejections> {
  const { db, clock, random, log, metrics } = options
  await q.forgetRejectionWriters(db, { before: new Date(clock.now().getTime() - DAY_MS) })
  const counter = metrics.counter(
    'gatehouse_hooks_rejections',
    'Deliveries refused, by provider and status.',
  )
  let gathered = nothingGathered()
  let added = 0

  const batches = startNumberedBatches<Gathered>({
    clock,
    random,
    take() {
      if (gathered.counts.size === 0) return undefined
      const taken = gathered
      gathered = nothingGathered()
      return taken
    },
    async save({ rows, counts, minutes }, number) {
      const sums = { counts: [...counts.values()], minutes: [...minutes.values()] }
      await q.saveRejections(db, { ...number, rows, ...sums, now: clock.now() })
      added += rows.length
      if (added >= MAX_ADDED) await prune()
    },
    reports: {
      fails: (error) =>
        log.warn('rejections not saved', {
          error: messageOf(error),
          rows: gathered.rows.length,
        }),
      works: () => log.info('rejections are saved again'),
    },
  })

  /** A flood must not wait for the hourly run: it would add 720,000 rows until then. */
  async function prune(): Promise<void> {
    added = 0
    try {
      await q.pruneRejections(db, { keep: MAX_REJECTIONS })
    } catch (error) {
      log.warn('rejections not pruned', { error: messageOf(error) })
    }
  }

  return {
    record({ provider, status, client, reason, at, wrongSecret = false }) {
      counter.add({ provider, status: String(status) })
      count(gathered, provider, status, at)
      if (wrongSecret) countMinute(gathered, provider, at)
      const { rows } = gathered
      rows.push({ at, provider, status, source: redactAddress(client), reason })
      if (rows.length > MAX_ROWS_PER_FLUSH) rows.shift()
    },
    flush: batches.flush,
    close: batches.close,
  }
}

function nothingGathered(): Gathered {
  return { rows: [], counts: new Map(), minutes: new Map() }
}

function count({ counts }: Gathered, provider: string, status: number, at: Date): void {
  const key = `${provider} ${status}`
  const before = counts.get(key)
  const last_at = before !== undefined && before.last_at > at ? before.last_at : at
  counts.set(key, { provider, status, total: (before?.total ?? 0) + 1, last_at })
}

function countMinute({ minutes }: Gathered, provider: string, at: Date): void {
  const minute = new Date(Math.floor(at.getTime() / MINUTE_MS) * MINUTE_MS)
  const key = `${provider} ${minute.getTime()}`
  minutes.set(key, { provider, minute, rejected: (minutes.get(key)?.rejected ?? 0) + 1 })
}
