import type { Database } from '../../db/client.ts'
import { visitQueries as q, type ClickKind } from '../../db/links/visits.ts'
import type { Log } from '../../kernel/log.ts'
import type { Metrics } from '../../kernel/metrics.ts'
import { reportsTo, startNumberedBatches } from '../../kernel/repeat.ts'
import type { Clock } from '../../kernel/time.ts'
import type { RandomBytes } from '../../kernel/tokens.ts'

/** Clicks on their way into the database. */
export type Clicks = Awaited<ReturnType<typeof openClicks>>

export interface ClicksOptions {
  db: Database
  clock: Clock
  random: RandomBytes
  log: Log
  metrics: Metrics
}

interface LinkClicks {
  link_id: string
  day: string
  kind: ClickKind
  clicks: number
}

const DAY_MS = 86_400_000

/** How many days the pages show clicks of, today included. */
export const CLICK_DAYS = 30

/** Counts in memory and writes once every second: a visit waits for no database. */
export async function openClicks(options: ClicksOptions) {
  const { db, clock, random, log, metrics } = options
  await q.forgetClickWriters(db, { before: new Date(clock.now().getTime() - DAY_MS) })
  /** By link, day (since 1970, UTC) and kind. */
  let waiting = new Map<string, LinkClicks>()

  const batches = startNumberedBatches<readonly LinkClicks[]>({
    name: 'clicks',
    clock,
    random,
    take() {
      if (waiting.size === 0) return undefined
      const taken = [...waiting.values()]
      waiting = new Map()
      return taken
    },
    save: (clicks, number) => q.saveClicks(db, { clicks, ...number, at: clock.now() }),
    reports: reportsTo(log, 'clicks not written, kept for later', 'clicks are written again'),
  })

  function unwritten(): number {
    const all = [...waiting.values(), ...(batches.unacknowledged ?? [])]
    return all.reduce((sum, { clicks }) => sum + clicks, 0)
  }

  const help = 'Clicks not in the database yet.'
  metrics.gauge('gatehouse_links_clicks_waiting', help, () => [[{}, unwritten()]])
  return {
    count(link_id: string, kind: ClickKind, at: Date) {
      const time = at.getTime()
      const key = `${link_id} ${Math.floor(time / DAY_MS)} ${kind}`
      const counted = waiting.get(key)
      if (counted !== undefined) counted.clicks++
      else waiting.set(key, { link_id, kind, day: dayText(time), clicks: 1 })
    },

    /** Writes the rest, and no more afterwards. */
    async close() {
      await batches.close()
      const lost = unwritten()
      if (lost > 0) log.warn('clicks lost: the database is out of reach', { clicks: lost })
    },
  }
}

/** The first of the days that pages show clicks of (UTC), such as `2026-01-31`. */
export function firstClickDay(now: Date): string {
  return dayText(now.getTime() - (CLICK_DAYS - 1) * DAY_MS)
}

function dayText(time: number): string {
  return new Date(time).toISOString().slice(0, 10)
}
