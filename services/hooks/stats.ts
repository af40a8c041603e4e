import type { Database } from '../../db/client.ts'
import { statsQueries, type HourStats } from '../../db/hooks/stats.ts'

const HOUR_MS = 3_600_000
/** The counts are kept for two days. */
export const MAX_STATS_HOURS = 48
/** What counts as recent: on the pages, in the stream's status and in the API alike. */
export const DEFAULT_STATS_HOURS = 24

/** Start of the window that ends now, such as of the last 24 hours. */
export function statsSince(now: Date, hours: number = DEFAULT_STATS_HOURS): Date {
  return new Date(now.getTime() - hours * HOUR_MS)
}

/**
 * Events and rejections per provider and hour of the clock in UTC. Of the oldest hour only what
 * lies in the window counts, so that the sum is that of the last `hours` hours.
 */
export function statsOf(
  db: Database,
  now: Date,
  hours: number = DEFAULT_STATS_HOURS,
): Promise<readonly HourStats[]> {
  return statsQueries.listStats(db, { since: statsSince(now, hours) })
}
