import type { Database } from '../../db/client.ts'
import { checkQueries as q, type CountOfCheck, type State } from '../../db/ops/checks.ts'
import type { Clock } from '../../kernel/time.ts'
import { readHealth } from './checks/health.ts'
import { barDays, readDays, upPart } from './checks/history.ts'
import type { CheckSources } from './checks/states.ts'

/** What others see of a service: nothing of its checks. */
export interface ServiceStatus {
  name: string
  state: State
  /** Whether its failures are expected now: all its checks are muted. */
  maintenance: boolean
  /** Of 90 days, the oldest first: the part of the looks that did not fail; null without any. */
  days: readonly { day: Date; up: number | null }[]
  /** The same over all these days. */
  up: number | null
}

/** A time in which a service had a check that failed. `ended_at` is null while it lasts. */
export interface Incident {
  service: string
  began_at: Date
  ended_at: Date | null
}

/** What `/status` shows. */
export interface PublicStatus {
  services: readonly ServiceStatus[]
  /** Of 14 days, the newest first. */
  incidents: readonly Incident[]
  readAt: Date
}

export interface StatusOptions extends CheckSources {
  db: Database
  clock: Clock
  /** The services that are shown; undefined if the page is off. */
  statusServices: () => readonly string[] | undefined
}

/** How long a reading is given again: strangers must not load the database. */
const KEPT_MS = 10_000
const INCIDENTS_MS = 14 * 86_400_000
/** Failures that are read, and incidents that are shown. */
const MAX_FAILURES = 1_000
const MAX_INCIDENTS = 50

/** Reads the public status, once in ten seconds for all who ask; undefined while it is off. */
export function createPublicStatus(options: StatusOptions) {
  const { clock, statusServices } = options
  let kept: { at: number; names: string; status: Promise<PublicStatus> } | undefined
  return async (): Promise<PublicStatus | undefined> => {
    const chosen = statusServices()
    if (chosen === undefined) return undefined
    const names = JSON.stringify(chosen)
    const at = clock.elapsed()
    if (kept === undefined || kept.names !== names || at - kept.at > KEPT_MS) {
      const status = readStatus(options, chosen)
      kept = { at, names, status }
      // The next one to ask tries again.
      status.catch(() => (kept = undefined))
    }
    return kept.status
  }
}

async function readStatus(
  options: StatusOptions,
  chosen: readonly string[],
): Promise<PublicStatus> {
  const { db, clock } = options
  const now = clock.now()
  const health = await readHealth(options, now)
  const services = chosen.flatMap((name) => health.services.filter((one) => one.name === name))
  const ids = services.flatMap(({ checks }) => checks.map(({ id }) => id))
  const since = new Date(now.getTime() - INCIDENTS_MS)
  const [counts, failures] = await Promise.all([
    readDays(db, ids, now),
    q.listFailures(db, { services: chosen, since, limit: MAX_FAILURES }),
  ])
  return {
    services: services.map(({ name, state, checks }) => {
      const own = checks.flatMap(({ id }) => counts.get(id) ?? [])
      const maintenance =
        checks.length > 0 && checks.every(({ muted_until }) => muted_until !== null)
      return { name, state, maintenance, ...daysOf(own, now) }
    }),
    incidents: mergeFailures(failures).slice(0, MAX_INCIDENTS),
    readAt: now,
  }
}

/** The days of a service, of which each check counts alike. */
function daysOf(counts: readonly CountOfCheck[], now: Date): Pick<ServiceStatus, 'days' | 'up'> {
  const byDay = Map.groupBy(counts, ({ start }) => start.getTime())
  const days = barDays([], now).map(({ day }) => {
    return { day, up: upPart(byDay.get(day.getTime()) ?? []) }
  })
  return { days, up: upPart(counts) }
}

/** Failures of a service that overlap are one incident. They come and go newest first. */
function mergeFailures(failures: readonly Incident[]): readonly Incident[] {
  const merged: Incident[] = []
  for (const failure of failures.toReversed()) {
    const last = merged.findLast(({ service }) => service === failure.service)
    if (last !== undefined && isDuring(failure.began_at, last)) {
      last.ended_at = latest(last.ended_at, failure.ended_at)
    } else merged.push({ ...failure })
  }
  return merged.toReversed()
}

function isDuring(at: Date, { ended_at }: Incident): boolean {
  return ended_at === null || at <= ended_at
}

function latest(a: Date | null, b: Date | null): Date | null {
  if (a === null || b === null) return null
  return a > b ? a : b
}
