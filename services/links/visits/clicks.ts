import type { Database } from '../../../db/client.ts'
import { visitQueries as q, type ClickKind } from '../../../db/links/visits.ts'
import type { Log } from '../../../kernel/log.ts'
import type { Metrics } from '../../../kernel/metrics.ts'
import { reportsTo, startNumberedBatches } from '../../../kernel/repeat.ts'
import type { Clock } from '../../../kernel/time.ts'
import type { RandomBytes } from '../../../kernel/tokens.ts'
import type { OwnHosts } from '../links/loop.ts'
import { createSourceCounts, MAX_HOSTS, type DaySources } from './source-counts.ts'
import { createSources, kindOf, type VisitHeaders } from './sources.ts'

/** Clicks on their way into the database. */
export type Clicks = Awaited<ReturnType<typeof openClicks>>

export interface ClicksOptions {
  db: Database
  clock: Clock
  random: RandomBytes
  log: Log
  metrics: Metrics
  /** Hosts under which the resolver is reached: their pages are no referrers. */
  ownHosts: OwnHosts
  /** Whether hosts of referrers and kinds of clients are counted, too. */
  stats: () => StatsLevel
}

/** What is counted of visits: everything, or their number alone. */
export type StatsLevel = 'full' | 'totals'

/** Clicks of one day and kind, by the link's id. */
interface Counted {
  day: string
  kind: ClickKind
  byLink: Map<string, { clicks: number; last: number }>
}

/** A row of the statement. */
interface LinkClicks {
  link_id: string
  day: string
  kind: ClickKind
  clicks: number
  /** When the last of them came. */
  last: Date
}

/** What one statement writes. */
type Batch = { clicks: readonly LinkClicks[] } | { sources: readonly DaySources[] }

const DAY_MS = 86_400_000

/** How many days the pages show clicks of, today included. */
export const CLICK_DAYS = 30
/** How many days are kept, today included: three years. */
export const KEPT_DAYS = 1_096

/** Rows of one statement: with more, all others wait longer for the embedded engine. */
const MAX_BATCH_ROWS = 250

/** Counts in memory and writes once every second: a visit waits for no database. */
export async function openClicks(options: ClicksOptions) {
  const { db, clock, random, log, metrics, ownHosts, stats } = options
  await q.forgetClickWriters(db, { before: new Date(clock.now().getTime() - DAY_MS) })
  /**
   * By day and kind. While the database is away, only links in memory are redirected: that bounds
   * it.
   */
  let waiting = new Map<string, Counted>()
  let unwritten = 0
  const sources = createSources(ownHosts)
  const counts = createSourceCounts()

  const batches = startNumberedBatches<Batch>({
    name: 'clicks',
    clock,
    random,
    *take() {
      const taken = waiting
      waiting = new Map()
      sources.forget()
      const ofSources = counts.take()
      for (const clicks of batchesOf(taken.values())) yield { clicks }
      for (const rows of ofSources) yield { sources: rows }
    },
    async save(content, number) {
      const at = clock.now()
      if ('sources' in content) {
        await q.saveSources(db, { ...content, ...number, at, hosts: MAX_HOSTS })
        return
      }
      const { clicks } = content
      await q.saveClicks(db, { clicks, ...number, at })
      unwritten = clicks.reduce((left, row) => left - row.clicks, unwritten)
    },
    reports: reportsTo(log, 'clicks not written, kept for later', 'clicks are written again'),
  })

  const help = 'Clicks not in the database yet.'
  metrics.gauge('gatehouse_links_clicks_waiting', help, () => [[{}, unwritten]])

  function count(link_id: string, kind: ClickKind, at: Date) {
    const time = at.getTime()
    const key = `${kind} ${Math.floor(time / DAY_MS)}`
    const counted = waiting.getOrInsertComputed(key, () => {
      return { kind, day: dayText(time), byLink: new Map() }
    })
    const ofLink = counted.byLink.get(link_id)
    if (ofLink === undefined) counted.byLink.set(link_id, { clicks: 1, last: time })
    else {
      ofLink.clicks++
      ofLink.last = time
    }
    unwritten++
    return counted
  }

  return {
    count,

    /** Counts a redirect, and of its headers a host and a kind of client. */
    countVisit(link_id: string, headers: VisitHeaders, at: Date) {
      const client = sources.clientOf(headers)
      const { day } = count(link_id, kindOf(client, headers), at)
      if (stats() === 'full') counts.add(link_id, day, sources.referrerOf(headers), client.name)
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
    for (const [link_id, { clicks, last }] of byLink) {
      rows.push({ link_id, day, kind, clicks, last: new Date(last) })
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

/** The first of the days that are kept. */
export function firstKeptDay(now: Date): string {
  return dayText(now.getTime() - (KEPT_DAYS - 1) * DAY_MS)
}

/** The first day of the months of which hosts and kinds of clients are kept. */
export function firstKeptMonth(now: Date): string {
  return `${firstKeptDay(now).slice(0, 7)}-01`
}

export function dayText(time: number): string {
  return new Date(time).toISOString().slice(0, 10)
}
