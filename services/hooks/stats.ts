import type { Database } from '../../db/client.ts'
import { statsQueries, type HourStats } from '../../db/hooks/stats.ts'

const HOUR_MS = 3_600_000
/** The counts are kept for two days. */
export const MAX_STATS_HOURS = 48
export const DEFAULT_STATS_HOURS = 24

/**
 * Events and rejections per provider and hour: whole hours of the clock in UTC, the last of which
 * is the hour of `now`.
 */
export function statsOf(
  db: Database,
  now: Date,
  hours: number = DEFAULT_STATS_HOURS,
): Promise<readonly HourStats[]> {
  const last = Math.floor(now.getTime() / HOUR_MS)
  return statsQueries.listStats(db, { since: new Date((last - hours + 1) * HOUR_MS) })
}
