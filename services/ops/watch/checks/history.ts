import type { Database, Executor } from '../../../../db/client.ts'
import * as Type from '../../../../kernel/schema.ts'
import { checkQueries as q, CheckState, Count, Period } from '../../../../db/ops/watch/checks.ts'
import type { CountOfCheck } from '../../../../db/ops/watch/checks.ts'
import { nullable } from '../../../../db/sql-file.ts'
import { notFound } from '../../../../kernel/fault.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/** Days that a bar has. */
const BAR_DAYS = 90
/** Hours that the line of times has. */
const LINE_HOURS = 7 * 24
const MAX_PERIODS = 50

/** The days over which uptime is given. */
export const UPTIME_DAYS = [1, 7, 30, 90] as const
/**
 * The part of the runs that did not fail, of those that found something. Null without any, and if the check was watched
 * for less than the next shorter time.
 */
export type Uptime = Type.Static<typeof Uptime>
const Part = nullable(Type.Number())
const Uptime = Type.Object({ 1: Part, 7: Part, 30: Part, 90: Part })

/** The history of a check as the API gives it. */
export const History = Type.Object({
  ...Type.Pick(CheckState, ['id', 'service', 'name', 'type', 'state', 'since']).properties,
  uptime: Uptime,
  hours: Type.Array(Count),
  days: Type.Array(Count),
  changes: Type.Array(Period),
  older: nullable(Type.Integer({ description: 'Give it as before for older changes' })),
})

/** What is known of a check from before. */
export interface CheckHistory {
  check: CheckState
  uptime: Uptime
  /** Milliseconds since its first run. */
  watchedMs: number
  /** Hours of the last week with a run, the oldest first. */
  hours: readonly Count[]
  /** Of the last 90 days those with a run, the oldest first. */
  days: readonly Count[]
  /** What its state was, the newest first. */
  periods: readonly Period[]
  /** The cursor of the next page of older periods; null on the last page. */
  older: number | null
}

/** Reads the history of a check. Throws 404 for an unknown id. */
export async function readHistory(
  db: Database,
  id: number,
  now: Date,
  before: number | null = null,
): Promise<CheckHistory> {
  const [check] = await q.listChecks(db, { id, now, limit: 1 })
  if (check === undefined) throw notFound('check not found')
  const hoursSince = new Date(now.getTime() - LINE_HOURS * HOUR_MS)
  const ids = [id]
  const [hours, days, periods, [first]] = await Promise.all([
    countsOf(db, ids, 'hour', hoursSince, LINE_HOURS + 1),
    countsOf(db, ids, 'day', firstDay(now), BAR_DAYS),
    q.listPeriods(db, { id, before, limit: MAX_PERIODS }),
    q.listFirstPeriods(db, { ids, limit: 1 }),
  ])
  const older = periods.length === MAX_PERIODS ? (periods.at(-1)?.id ?? null) : null
  const known = watchedOf(hours, days, first?.began_at, now)
  return { check, ...known, hours, days, periods, older }
}

/** A history as the API gives it. */
export function toHistory({ check, periods, ...rest }: CheckHistory): Type.Static<typeof History> {
  const { id, service, name, type, state, since } = check
  const { uptime, older } = rest
  const [hours, days] = [rest.hours.map(withoutCheck), rest.days.map(withoutCheck)]
  const changes = [...periods]
  return { id, service, name, type, state, since, uptime, hours, days, changes, older }
}

function withoutCheck({
  start,
  runs,
  failures,
  warnings,
  unknown,
  ms_min,
  ms_mean,
  ms_max,
}: Count) {
  return { start, runs, failures, warnings, unknown, ms_min, ms_mean, ms_max }
}

/** The bar of a check or of a service: each of its days, the oldest first, and all together. */
export interface Bar {
  days: readonly UptimeDay[]
  up: number | null
}

/** A day, and the part of its runs that did not fail; null without any. */
export interface UptimeDay {
  day: Date
  up: number | null
}

/** The days of checks, by the check's id. */
export async function readDays(
  db: Database,
  ids: readonly number[],
  now: Date,
): Promise<ReadonlyMap<number, readonly CountOfCheck[]>> {
  const rows = ids.length === 0 ? [] : await countsOf(db, ids, 'day', firstDay(now), BAR_DAYS)
  return Map.groupBy(rows, ({ check_id }) => check_id)
}

/** The uptime of a check, and how long it was watched. */
export type Watched = Pick<CheckHistory, 'uptime' | 'watchedMs'>

/** The uptime of checks, by the check's id; without the checks that never ran. */
export async function readUptimes(
  db: Executor,
  ids: readonly number[],
  now: Date,
): Promise<ReadonlyMap<number, Watched>> {
  const since = new Date(now.getTime() - DAY_MS)
  const hours = await countsOf(db, ids, 'hour', since, 24)
  const days = await countsOf(db, ids, 'day', firstDay(now), BAR_DAYS)
  const beginnings = await q.listFirstPeriods(db, { ids, limit: ids.length })
  const byCheck = Map.groupBy(days, ({ check_id }) => check_id)
  return new Map(
    [...byCheck].map(([id, ofCheck]) => {
      const lately = hours.filter(({ check_id }) => check_id === id)
      const first = beginnings.find(({ check_id }) => check_id === id)
      return [id, watchedOf(lately, ofCheck, first?.began_at, now)] as const
    }),
  )
}

/** When the first state began; where older days are known, the first of them. */
function beginningOf(days: readonly Count[], first: Date | undefined): Date | null {
  const day = days[0]?.start
  if (first === undefined) return day ?? null
  return day !== undefined && first.getTime() - day.getTime() >= DAY_MS ? day : first
}

/** The counts of checks since a time, at most `each` of a check. */
function countsOf(
  db: Executor,
  ids: readonly number[],
  span: 'hour' | 'day',
  since: Date,
  each: number,
): Promise<readonly CountOfCheck[]> {
  return q.listCounts(db, { ids, span, since, each, limit: ids.length * each })
}

/** The bar of the days of one check, or of several, each of which counts alike. */
export function barOf(counts: readonly Count[], now: Date): Bar {
  const first = firstDay(now).getTime()
  const byDay = Map.groupBy(counts, ({ start }) => start.getTime())
  const days = Array.from({ length: BAR_DAYS }, (_, at) => {
    const day = first + at * DAY_MS
    return { day: new Date(day), up: upPart(byDay.get(day) ?? []) }
  })
  return { days, up: upPart(counts) }
}

/** The beginning of the first day (UTC) of a bar that ends today. */
function firstDay(now: Date): Date {
  return new Date(Math.floor(now.getTime() / DAY_MS) * DAY_MS - (BAR_DAYS - 1) * DAY_MS)
}

/** An hour, and its results, if there are any. */
export interface Hour {
  hour: Date
  /** The part of its runs that did not fail; null without any. */
  up: number | null
  count: Count | undefined
}

/** The hours of a line, the oldest first. */
export function lineOf(counts: readonly Count[], now: Date): readonly Hour[] {
  const last = Math.floor(now.getTime() / HOUR_MS) * HOUR_MS
  const byHour = new Map(counts.map((count) => [count.start.getTime(), count]))
  return Array.from({ length: LINE_HOURS }, (_, at) => {
    const hour = last - (LINE_HOURS - 1 - at) * HOUR_MS
    const count = byHour.get(hour)
    return { hour: new Date(hour), up: upPart(count === undefined ? [] : [count]), count }
  })
}

/** One day is the last 24 hours. Longer times are whole days (UTC), today included. */
function watchedOf(
  hours: readonly Count[],
  days: readonly Count[],
  first: Date | undefined,
  now: Date,
): Watched {
  const since = beginningOf(days, first)
  const watchedMs = since === null ? 0 : Math.max(0, now.getTime() - since.getTime())
  const over = (counts: readonly Count[], window: number, before: number) => {
    // Minutes say nothing of a month.
    if (watchedMs <= before * DAY_MS) return null
    const begin = now.getTime() - window * DAY_MS
    return upPart(counts.filter(({ start }) => start.getTime() > begin))
  }
  return {
    uptime: {
      1: over(hours, 1, 0),
      7: over(days, 7, 1),
      30: over(days, 30, 7),
      90: over(days, 90, 30),
    },
    watchedMs,
  }
}

type Results = Pick<Count, 'runs' | 'failures' | 'unknown'>

/** The part of the runs that did not fail; null if none found anything. */
export function upPart(counts: readonly Results[]): number | null {
  const known = counts.reduce((sum, { runs, unknown }) => sum + runs - unknown, 0)
  const failures = counts.reduce((sum, count) => sum + count.failures, 0)
  return known === 0 ? null : (known - failures) / known
}
