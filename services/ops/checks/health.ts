import type { Database } from '../../../db/client.ts'
import { checkQueries as q, type CheckState } from '../../../db/ops/checks.ts'
import type { Level } from '../../../db/ops/events.ts'
import type { Config } from '../config.ts'
import type { InventorySource, Service } from '../inventory.ts'
import type { Redact } from '../redact.ts'
import { storedName } from './results.ts'
import { levelOf } from './run.ts'

/** A check of the inventory with its last result; undefined if it never ran. */
export interface CheckHealth {
  name: string
  type: string
  /** How bad it is when the check fails. */
  level: Level
  last: CheckState | undefined
}

/** A service with its checks, those that fail first. */
export interface ServiceHealth {
  name: string
  checks: readonly CheckHealth[]
}

/**
 * The state of everything in the inventory: nothing to check, nothing checked yet, something
 * fails, some results are too old, some checks never ran, or all is well.
 */
export type HealthState = 'empty' | 'unchecked' | 'failing' | 'stale' | 'partial' | 'well'

export interface Health {
  state: HealthState
  /** Those with a check that fails first, then those with one that never ran. */
  services: readonly ServiceHealth[]
  /** Numbers of checks. */
  total: number
  good: number
  unchecked: number
  failing: readonly CheckState[]
  /** The oldest of the last results. */
  checkedAt: Date | undefined
}

/** What health is read from. */
export interface HealthSources {
  db: Database
  inventory: InventorySource
  redact: Redact
  config: { current: Pick<Config, 'interval'> }
}

/** More than inventories have: states of removed checks stay in the table. */
const MAX_STATES = 20_000
/** The longest session: results are no older than two intervals and this if sessions run. */
const SESSION_MS = 30 * 60_000

/** Reads the last results of all checks in the inventory. */
export async function readHealth(
  { db, inventory, redact, config }: HealthSources,
  now: Date,
): Promise<Health> {
  const [{ services }, states] = await Promise.all([
    inventory.current(),
    q.listCheckStates(db, { limit: MAX_STATES }),
  ])
  const byService = Map.groupBy(states, ({ service }) => service)
  const all = services.map((service) => serviceHealth(service, byService, redact))
  const checks = all.flatMap((service) => service.checks)
  const last = checks.flatMap((check) => check.last ?? [])
  const times = last.map(({ checked_at }) => checked_at.getTime())
  const oldest = Math.min(...times)
  const health = {
    services: all.toSorted((a, b) => rankOf(a.checks) - rankOf(b.checks)),
    total: checks.length,
    good: last.filter(({ ok }) => ok).length,
    unchecked: checks.length - last.length,
    failing: last.filter(({ ok }) => !ok),
    checkedAt: last.length === 0 ? undefined : new Date(oldest),
  }
  const maxAge = 2 * config.current.interval * 1_000 + SESSION_MS
  return { ...health, state: stateOf(health, now.getTime() - oldest > maxAge) }
}

function serviceHealth(
  { name, checks }: Service,
  byService: ReadonlyMap<string, readonly CheckState[]>,
  redact: Redact,
): ServiceHealth {
  const states = new Map(byService.get(name)?.map((state) => [state.name, state]))
  const shown = checks.map((check): CheckHealth => {
    const stored = storedName(check, redact)
    return { name: stored, type: check.type, level: levelOf(check), last: states.get(stored) }
  })
  return { name, checks: shown.toSorted((a, b) => rankOf([a]) - rankOf([b])) }
}

/** 0 if a check fails, 1 if one never ran, else 2. */
function rankOf(checks: readonly CheckHealth[]): number {
  if (checks.some(({ last }) => last?.ok === false)) return 0
  return checks.some(({ last }) => last === undefined) ? 1 : 2
}

function stateOf(
  { total, unchecked, failing }: Pick<Health, 'total' | 'unchecked' | 'failing'>,
  isOld: boolean,
): HealthState {
  if (total === 0) return 'empty'
  if (unchecked === total) return 'unchecked'
  if (failing.length > 0) return 'failing'
  if (isOld) return 'stale'
  return unchecked > 0 ? 'partial' : 'well'
}
