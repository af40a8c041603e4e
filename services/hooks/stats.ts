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
 * Events and rejections per hour of the clock in UTC, of one provider or, by default, of each. Of
 * the oldest hour only what lies in the window counts: the sum is that of the last `hours` hours.
 */
export async function statsOf(
  db: Database,
  now: Date,
  { provider = '', hours = DEFAULT_STATS_HOURS }: { provider?: string; hours?: number } = {},
): Promise<readonly HourStats[]> {
  const all = await statsQueries.listStats(db, { since: statsSince(now, hours) })
  return all.filter((row) => provider === '' || row.provider === provider)
}
