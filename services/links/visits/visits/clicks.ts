import type { Database } from '../../../../db/client.ts'
import { visitQueries as q, type ClickKind } from '../../../../db/links/visits/visits.ts'
import type { Log } from '../../../../kernel/log.ts'
import type { Metrics } from '../../../../kernel/metrics.ts'
import { reportsTo, startNumberedBatches } from '../../../../kernel/repeat.ts'
import type { Clock } from '../../../../kernel/time.ts'
import type { RandomBytes } from '../../../../kernel/tokens.ts'
import type { OwnHosts } from '../../names/links/loop.ts'
import { createSources, kindOf, type VisitHeaders } from './sources.ts'
import {
  clickBatches,
  createVisitCounts,
  DAY_MS,
  dayText,
  MAX_HOSTS,
  sourceBatches,
  type DaySources,
  type LinkClicks,
} from './visit-counts.ts'

/** Clicks on their way into the database. */
export type Clicks = ReturnType<typeof openClicks>

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

/** What one statement writes. */
type Batch = { clicks: readonly LinkClicks[] } | { sources: readonly DaySources[] }

/** How many days the pages show clicks of, today included. */
export const CLICK_DAYS = 30
/** How many days are kept, today included: three years. */
export const KEPT_DAYS = 1_096

/** Counts in memory and writes once every second: a visit waits for no database. */
export function openClicks(options: ClicksOptions) {
  const { db, clock, random, log, metrics, ownHosts, stats } = options
  const sources = createSources(ownHosts)
  const counts = createVisitCounts()
  let unwritten = 0

  const batches = startNumberedBatches<Batch>({
    name: 'clicks',
    clock,
    random,
    *take() {
      const days = counts.take()
      sources.forget()
      for (const clicks of clickBatches(days)) yield { clicks }
      for (const rows of sourceBatches(days)) yield { sources: rows }
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
    unwritten++
    return counts.add(link_id, kind, at.getTime())
  }

  return {
    count,

    /** Removes the numbers of processes that have ended: they have no batch left to send. */
    async forgetWriters() {
      await q.forgetClickWriters(db, { before: new Date(clock.now().getTime() - DAY_MS) })
    },

    /** Counts a redirect, and of its headers a host and a kind of client. */
    countVisit(link_id: string, headers: VisitHeaders, at: Date) {
      const client = sources.clientOf(headers)
      const ofLink = count(link_id, kindOf(client, headers), at)
      if (stats() === 'full') counts.addSource(ofLink, sources.referrerOf(headers), client.name)
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
