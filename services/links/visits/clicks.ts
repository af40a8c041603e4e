import type { Database } from '../../../db/client.ts'
import { visitQueries as q, type ClickKind } from '../../../db/links/visits.ts'
import type { Log } from '../../../kernel/log.ts'
import type { Metrics } from '../../../kernel/metrics.ts'
import { reportsTo, startNumberedBatches } from '../../../kernel/repeat.ts'
import type { Clock } from '../../../kernel/time.ts'
import type { RandomBytes } from '../../../kernel/tokens.ts'

/** Clicks on their way into the database. */
export type Clicks = Awaited<ReturnType<typeof openClicks>>

export interface ClicksOptions {
  db: Database
  clock: Clock
  random: RandomBytes
  log: Log
  metrics: Metrics
}

/** Clicks of one day and kind, by the link's id. */
interface Counted {
  day: string
  kind: ClickKind
  byLink: Map<string, number>
}

/** A row of the statement. */
interface LinkClicks {
  link_id: string
  day: string
  kind: ClickKind
  clicks: number
}

const DAY_MS = 86_400_000

/** How many days the pages show clicks of, today included. */
export const CLICK_DAYS = 30

/** Rows of one statement: with more, all others wait longer for the embedded engine. */
const MAX_BATCH_ROWS = 250

/** Counts in memory and writes once every second: a visit waits for no database. */
export async function openClicks(options: ClicksOptions) {
  const { db, clock, random, log, metrics } = options
  await q.forgetClickWriters(db, { before: new Date(clock.now().getTime() - DAY_MS) })
  /**
   * By day and kind. While the database is away, only links in memory are redirected: that bounds
   * it.
   */
  let waiting = new Map<string, Counted>()
  let unwritten = 0

  const batches = startNumberedBatches<readonly LinkClicks[]>({
    name: 'clicks',
    clock,
    random,
    take() {
      const taken = waiting
      waiting = new Map()
      return batchesOf(taken.values())
    },
    async save(clicks, number) {
      await q.saveClicks(db, { clicks, ...number, at: clock.now() })
      unwritten = clicks.reduce((left, row) => left - row.clicks, unwritten)
    },
    reports: reportsTo(log, 'clicks not written, kept for later', 'clicks are written again'),
  })

  const help = 'Clicks not in the database yet.'
  metrics.gauge('gatehouse_links_clicks_waiting', help, () => [[{}, unwritten]])
  return {
    count(link_id: string, kind: ClickKind, at: Date) {
      const time = at.getTime()
      const key = `${kind} ${Math.floor(time / DAY_MS)}`
      const { byLink } = waiting.getOrInsertComputed(key, () => {
        return { kind, day: dayText(time), byLink: new Map<string, number>() }
      })
      byLink.set(link_id, (byLink.get(link_id) ?? 0) + 1)
      unwritten++
    },

    /** Writes the rest, and no more afterwards. */
    async close() {
      await batches.close()
      if (unwritten > 0) {
        log.warn('clicks lost: the database is out of reach', { clicks: unwritten })
      }
    },
  }
}

/** The rows of counted clicks, as many at a time as one statement may write. */
function* batchesOf(counted: Iterable<Counted>): Generator<readonly LinkClicks[]> {
  let rows: LinkClicks[] = []
  for (const { day, kind, byLink } of counted) {
    for (const [link_id, clicks] of byLink) {
      rows.push({ link_id, day, kind, clicks })
      if (rows.length < MAX_BATCH_ROWS) continue
      yield rows
      rows = []
    }
  }
  if (rows.length > 0) yield rows
}

/** The first of the days that pages show clicks of (UTC), such as `2026-01-31`. */
export function firstClickDay(now: Date): string {
  return dayText(now.getTime() - (CLICK_DAYS - 1) * DAY_MS)
}

function dayText(time: number): string {
  return new Date(time).toISOString().slice(0, 10)
}
