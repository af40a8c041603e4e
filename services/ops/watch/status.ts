import type { Database } from '../../../db/client.ts'
import { checkQueries as q, type State } from '../../../db/ops/watch/checks.ts'
import type { Clock } from '../../../kernel/time.ts'
import { readHealth } from './checks/health.ts'
import { barOf, readDays, type Bar } from './checks/history.ts'
import type { CheckSources } from './checks/states.ts'

/** What others see of a service: nothing of its checks. */
export interface ServiceStatus extends Bar {
  name: string
  state: State
  /** Whether its failures are expected now: all its checks are muted. */
  maintenance: boolean
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

/** Reads the public status, once in ten seconds for everybody; undefined while it is off. */
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
      return { name, state, maintenance, ...barOf(own, now) }
    }),
    incidents: mergeFailures(failures).slice(0, MAX_INCIDENTS),
    readAt: now,
  }
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
