import type { Executor } from '../../../db/client.ts'
import { checkQueries as q, type CountOfCheck } from '../../../db/ops/checks.ts'
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
  const idsOf = ({ checks }: ServiceHealth) => checks.slice(0, MAX_CHECKS).map(({ id }) => id)
  const ids = services.flatMap(idsOf)
  const first = Math.floor(now.getTime() / HOUR_MS - HOURS + 1) * HOUR_MS
  const asked = { ids, span: 'hour', since: new Date(first), each: HOURS + 1 }
  const counts =
    ids.length === 0 ? [] : await q.listCounts(db, { ...asked, limit: ids.length * asked.each })
  const byCheck = Map.groupBy(counts, ({ check_id }) => check_id)
  return new Map(
    services.map((service) => {
      const own = idsOf(service).flatMap((id) => byCheck.get(id) ?? [])
      return [service.name, { hours: hoursOf(own, first), up: upPart(own) }]
    }),
  )
}

function hoursOf(counts: readonly CountOfCheck[], first: number): readonly RecentHour[] {
  const byHour = Map.groupBy(counts, ({ start }) => start.getTime())
  return Array.from({ length: HOURS }, (_, at) => {
    const hour = first + at * HOUR_MS
    return { hour: new Date(hour), up: upPart(byHour.get(hour) ?? []) }
  })
}
