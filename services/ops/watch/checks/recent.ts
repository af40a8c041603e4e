import type { Executor } from '../../../../db/client.ts'
import { checkQueries as q, type HourSum } from '../../../../db/ops/watch/checks.ts'
import type { ServiceHealth } from './health.ts'
import { upPart } from './history.ts'

const HOUR_MS = 3_600_000
/** Checks of a service whose hours count, the worst first: open pages read them often. */
const MAX_CHECKS = 20
/** Hours that a strip has. */
const HOURS = 24

/** An hour of a service: the part of its runs that did not fail; null without any. */
export interface RecentHour {
  hour: Date
  up: number | null
}

/** The last 24 hours of a service, the oldest first, and all together. */
export interface Recent {
  hours: readonly RecentHour[]
  up: number | null
}

/** The last 24 hours of services, by name; each check of a service counts alike. */
export async function readRecent(
  db: Executor,
  services: readonly ServiceHealth[],
  now: Date,
): Promise<ReadonlyMap<string, Recent>> {
  const asked = services.map(({ name, checks }) => {
    return { name, ids: checks.slice(0, MAX_CHECKS).map(({ id }) => id) }
  })
  const first = Math.floor(now.getTime() / HOUR_MS - HOURS + 1) * HOUR_MS
  const bounds = { since: new Date(first), each: HOURS + 1 }
  const limit = services.length * bounds.each
  const sums = await q.sumHours(db, { services: asked, ...bounds, limit })
  const byService = Map.groupBy(sums, ({ service }) => service)
  return new Map(
    services.map(({ name }) => {
      const own = byService.get(name) ?? []
      return [name, { hours: hoursOf(own, first), up: upPart(own) }]
    }),
  )
}

function hoursOf(sums: readonly HourSum[], first: number): readonly RecentHour[] {
  const byHour = new Map(sums.map((sum) => [sum.start.getTime(), sum]))
  return Array.from({ length: HOURS }, (_, at) => {
    const hour = first + at * HOUR_MS
    const sum = byHour.get(hour)
    return { hour: new Date(hour), up: upPart(sum === undefined ? [] : [sum]) }
  })
}
