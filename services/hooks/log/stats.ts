import type { Database } from '../../../db/client.ts'
import { statsQueries, type HourStats } from '../../../db/hooks/log/stats.ts'
import { hoursBefore } from '../../../kernel/time.ts'
import { RECENT_HOURS } from '../receive/providers/providers.ts'

/** The counts are kept for two days. */
export const MAX_STATS_HOURS = 48

/**
 * Events and rejections per hour of the clock in UTC, of one provider or, by default, of each. Of
 * the oldest hour only what lies in the window counts: the sum is that of the last `hours` hours.
 */
export async function statsOf(
  db: Database,
  now: Date,
  { provider = '', hours = RECENT_HOURS }: { provider?: string; hours?: number } = {},
): Promise<readonly HourStats[]> {
  const all = await statsQueries.listStats(db, { since: hoursBefore(now, hours) })
  return all.filter((row) => provider === '' || row.provider === provider)
}
