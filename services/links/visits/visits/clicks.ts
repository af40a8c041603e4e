import type { Database } from '../../../../db/client.ts'
import { visitQueries as q, type ClickKind } from '../../../../db/links/visits/visits.ts'
import type { Log } from '../../../../kernel/log.ts'
import type { Metrics } from '../../../../kernel/metrics.ts'
import { reportsTo, startNumberedBatches } from '../../../../kernel/repeat.ts'
import type { Clock } from '../../../../kernel/time.ts'
import type { RandomBytes } from '../../../../kernel/tokens.ts'
import type { OwnHosts } from '../../names/links/loop.ts'
import { createSources, kindOf, type VisitHeaders } from './sources.ts'
import type { OwnVisits } from './tallies.ts'
import type { KnownLink } from './target-cache.ts'
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

/** Clicks that one statement writes, and the number with which they were sent. */
interface ClickBatch {
  clicks: readonly LinkClicks[]
  number?: number
}

/** What one statement writes. */
type Batch = ClickBatch | { sources: readonly DaySources[] }

/** How many days the pages show clicks of, today included. */
export const CLICK_DAYS = 30
/** How many days are kept, today included: three years. */
export const KEPT_DAYS = 1_096

/** Counts in memory and writes once every second: a visit waits for no database. */
export function openClicks(options: ClicksOptions) {
  const { db, clock, random, log, metrics, ownHosts, stats } = options
  const sources = createSources(ownHosts)
  const counts = createVisitCounts()
  /** Taken and not acknowledged. */
  let taken: readonly ClickBatch[] = []
  /** What was acknowledged during each read of links: its rows may lack it. */
  const readings = new Set<ClickBatch[]>()
  let waiting = 0

  const batches = startNumberedBatches<Batch>({
    name: 'clicks',
    clock,
    random,
    *take() {
      const days = counts.take()
      sources.forget()
      taken = [...clickBatches(days)].map((clicks) => ({ clicks }))
      yield* taken
      for (const rows of sourceBatches(days)) yield { sources: rows }
    },
    async save(content, number) {
      const at = clock.now()
      if ('sources' in content) {
        await q.saveSources(db, { ...content, ...number, at, hosts: MAX_HOSTS })
        return
      }
      const { clicks } = content
      content.number = number.batch
      await db.transaction(async (tx) => {
        await q.lockMovesShared(tx, {})
        await q.saveClicks(tx, { clicks, ...number, at })
      })
      taken = taken.filter((batch) => batch !== content)
      for (const acknowledged of readings) acknowledged.push(content)
      waiting = clicks.reduce((left, row) => left - row.clicks, waiting)
    },
    reports: reportsTo(log, 'clicks not written, kept for later', 'clicks are written again'),
  })

  const help = 'Clicks not in the database yet.'
  metrics.gauge('gatehouse_links_clicks_waiting', help, () => [[{}, waiting]])

  function count(link_id: string, kind: ClickKind, at: Date) {
    waiting++
    return counts.add(link_id, kind, at.getTime())
  }

  const ownVisits: OwnVisits = {
    writer: batches.writer,
    startReading() {
      const acknowledged: ClickBatch[] = []
      readings.add(acknowledged)
      return {
        unwritten: (link_id, written) =>
          [...acknowledged, ...taken]
            .filter(({ number = Infinity }) => number > written)
            .reduce(
              (sum, { clicks }) => sum + visitsIn(clicks, link_id),
              counts.visitsOf(link_id),
            ),
        [Symbol.dispose]: () => void readings.delete(acknowledged),
      }
    },
  }

  return {
    count,
    ownVisits,

    /** Removes the numbers of processes that have ended: they have no batch left to send. */
    async forgetWriters() {
      await q.forgetClickWriters(db, { before: new Date(clock.now().getTime() - DAY_MS) })
    },

    /**
     * Counts a redirect, and of its headers a host and a kind of client. A preview is no visit: it
     * uses up none and has no source.
     */
    countVisit({ id, tally }: KnownLink, headers: VisitHeaders, at: Date) {
      const client = sources.clientOf(headers)
      const kind = kindOf(client, headers)
      const ofLink = count(id, kind, at)
      if (kind === 'preview') return
      if (tally !== undefined) tally.visits++
      if (stats() === 'full') counts.addSource(ofLink, sources.referrerOf(headers), client.name)
    },

    /** Writes the rest, and no more afterwards. */
    async close() {
      await batches.close()
      if (waiting > 0) {
        log.warn('clicks lost: the database is out of reach', { clicks: waiting })
      }
    },
  }
}

/** Visits of a link in a batch, without previews. */
function visitsIn(clicks: readonly LinkClicks[], link_id: string): number {
  const rows = clicks.filter((row) => row.link_id === link_id && row.kind !== 'preview')
  return rows.reduce((sum, row) => sum + row.clicks, 0)
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
