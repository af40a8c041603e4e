import type { Database } from '../../../db/client.ts'
import {
  checkQueries as q,
  type Count,
  type CountOfCheck,
  type FoundCheck,
  type Period,
} from '../../../db/ops/checks.ts'
import { notFound } from '../../../kernel/fault.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/** Days that a bar has. */
export const BAR_DAYS = 90
/** Hours that the line of times has. */
export const LINE_HOURS = 7 * 24
export const MAX_PERIODS = 50

/** The days over which uptime is given. */
export const UPTIME_DAYS = [1, 7, 30, 90] as const
/** The part of the looks, of those that found something, that did not fail; null without any. */
export type Uptime = Readonly<Record<(typeof UPTIME_DAYS)[number], number | null>>

/** What is known of a check from before. */
export interface CheckHistory {
  check: FoundCheck
  uptime: Uptime
  /** Of the last `LINE_HOURS`, the oldest first; hours without a look are left out. */
  hours: readonly Count[]
  /** Of the last `BAR_DAYS`, the oldest first; days without a look are left out. */
  days: readonly Count[]
  /** What its state was, the newest first. */
  periods: readonly Period[]
}

/** Reads the history of a check. Throws 404 for an unknown id. */
export async function readHistory(
  db: Database,
  id: number,
  now: Date,
  before: number | null = null,
): Promise<CheckHistory> {
  const check = await q.findCheck(db, { id })
  if (check === undefined) throw notFound('check not found')
  const hoursSince = new Date(now.getTime() - LINE_HOURS * HOUR_MS)
  const ids = [id]
  const [hours, days, periods] = await Promise.all([
    q.listCounts(db, { ids, span: 'hour', since: hoursSince, limit: LINE_HOURS + 1 }),
    q.listCounts(db, { ids, span: 'day', since: firstDay(now), limit: BAR_DAYS }),
    q.listPeriods(db, { id, before, limit: MAX_PERIODS }),
  ])
  return { check, uptime: uptimeOf(hours, days, now), hours, days, periods }
}

/** The days of checks, by the check's id, for their bars. */
export async function readDays(
  db: Database,
  ids: readonly number[],
  now: Date,
): Promise<ReadonlyMap<number, readonly CountOfCheck[]>> {
  const asked = { ids, span: 'day', since: firstDay(now), limit: ids.length * BAR_DAYS }
  const rows = ids.length === 0 ? [] : await q.listCounts(db, asked)
  return Map.groupBy(rows, ({ check_id }) => check_id)
}

/** The beginning of the first day (UTC) of a bar that ends today. */
export function firstDay(now: Date): Date {
  return new Date(Math.floor(now.getTime() / DAY_MS) * DAY_MS - (BAR_DAYS - 1) * DAY_MS)
}

/** The days of a bar, the oldest first: each with its results, if there are any. */
export function barDays(
  counts: readonly Count[],
  now: Date,
): readonly { day: Date; count: Count | undefined }[] {
  const first = firstDay(now).getTime()
  const byDay = new Map(counts.map((count) => [count.start.getTime(), count]))
  return Array.from({ length: BAR_DAYS }, (_, at) => {
    const day = first + at * DAY_MS
    return { day: new Date(day), count: byDay.get(day) }
  })
}

/** The last day is read from its hours; longer times are whole days with the present one. */
function uptimeOf(hours: readonly Count[], days: readonly Count[], now: Date): Uptime {
  const over = (counts: readonly Count[], ms: number) => {
    const since = now.getTime() - ms
    return upPart(counts.filter(({ start }) => start.getTime() > since))
  }
  return {
    1: over(hours, DAY_MS),
    7: over(days, 7 * DAY_MS),
    30: over(days, 30 * DAY_MS),
    90: over(days, 90 * DAY_MS),
  }
}

/** The part of the looks that did not fail; null if none found anything. */
export function upPart(counts: readonly Count[]): number | null {
  const looks = counts.reduce((sum, { runs, unknown }) => sum + runs - unknown, 0)
  const failures = counts.reduce((sum, count) => sum + count.failures, 0)
  return looks === 0 ? null : (looks - failures) / looks
}
