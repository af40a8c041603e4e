import type { Database } from '../../../db/client.ts'
import { checkQueries as q, type CheckState, type State } from '../../../db/ops/checks.ts'
import type { Clock } from '../../../kernel/time.ts'
import type { Log } from '../../../kernel/log.ts'
import type { Metrics } from '../../../kernel/metrics.ts'
import { repeat, reportsTo, type Repeat } from '../../../kernel/repeat.ts'
import type { Config } from '../config.ts'
import type { InventorySource, Service } from '../inventory/inventory.ts'
import type { Redact } from '../redact.ts'
import { storedName } from './results.ts'

/** A check of the inventory, and what is known of it now. */
export interface CheckHealth {
  service: string
  name: string
  type: string
  state: State
  /** What it found, or why nothing is known of it and how that is mended. */
  message: string
  /** The last result; undefined if it never ran. */
  last: CheckState | undefined
}

/** A service with its checks, the worst first. Nothing is known of one without checks. */
export interface ServiceHealth {
  name: string
  state: State
  checks: readonly CheckHealth[]
}

/**
 * The state of everything in the inventory: the worst of its services. `empty`: no service has
 * checks. `unchecked`: no check has ever run.
 */
export type HealthState = State | 'empty' | 'unchecked'

export interface Health {
  state: HealthState
  /** The worst first. */
  services: readonly ServiceHealth[]
  /** All checks by their state. */
  checks: Readonly<Record<State, readonly CheckHealth[]>>
  /** The number of checks. */
  total: number
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

const WORST_FIRST = ['fail', 'warn', 'unknown', 'ok'] as const
/** More than inventories have: states of removed checks stay in the table. */
const MAX_STATES = 20_000
/** The longest session: results are no older than two intervals and this if sessions run. */
const SESSION_MS = 30 * 60_000
const MEASURE_MS = 15_000
const NEVER = 'not checked yet; a session of the probe or of a model does it'
const LONG_AGO = 'not checked lately; look at /sessions why none has done it. It was ok then'

/** Reads what is known of all checks in the inventory. */
export async function readHealth(
  { db, inventory, redact, config }: HealthSources,
  now: Date,
): Promise<Health> {
  const [{ services }, states] = await Promise.all([
    inventory.current(),
    q.listCheckStates(db, { limit: MAX_STATES }),
  ])
  const oldest = new Date(now.getTime() - 2 * config.current.interval * 1_000 - SESSION_MS)
  const byService = Map.groupBy(states, ({ service }) => service)
  const all = services.map((service) => {
    const known = new Map(byService.get(service.name)?.map((state) => [state.name, state]))
    return serviceHealth(service, known, redact, oldest)
  })
  const checks = all.flatMap((service) => service.checks)
  const times = checks.flatMap(({ last }) => last?.checked_at.getTime() ?? [])
  return {
    state: stateOf(all, checks),
    services: all.toSorted(byState),
    checks: { ...NO_CHECKS, ...Object.groupBy(checks, ({ state }) => state) },
    total: checks.length,
    checkedAt: times.length === 0 ? undefined : new Date(Math.min(...times)),
  }
}

const NO_CHECKS: Health['checks'] = { ok: [], warn: [], fail: [], unknown: [] }

function serviceHealth(
  { name: service, checks }: Service,
  known: ReadonlyMap<string, CheckState>,
  redact: Redact,
  oldest: Date,
): ServiceHealth {
  const shown = checks.map((check): CheckHealth => {
    const name = storedName(check, redact)
    const last = known.get(name)
    return { service, name, type: check.type, last, ...knownOf(last, oldest) }
  })
  return { name: service, state: worstOf(shown), checks: shown.toSorted(byState) }
}

/** What is known now: that a check was ok long ago says nothing. */
function knownOf(
  last: CheckState | undefined,
  oldest: Date,
): Pick<CheckHealth, 'state' | 'message'> {
  if (last === undefined) return { state: 'unknown', message: NEVER }
  const { state, message, checked_at } = last
  if (state !== 'ok' || checked_at >= oldest) return { state, message }
  return { state: 'unknown', message: `${LONG_AGO}: ${message}` }
}

function byState(a: { state: State }, b: { state: State }): number {
  return WORST_FIRST.indexOf(a.state) - WORST_FIRST.indexOf(b.state)
}

function worstOf(parts: readonly { state: State }[]): State {
  return parts.toSorted(byState)[0]?.state ?? 'unknown'
}

function stateOf(services: readonly ServiceHealth[], checks: readonly CheckHealth[]): HealthState {
  if (checks.length === 0) return 'empty'
  return checks.some(({ last }) => last !== undefined) ? worstOf(services) : 'unchecked'
}

/** What the gauge of checks is made of. */
interface MeasureOptions extends HealthSources {
  clock: Clock
  log: Log
  metrics: Metrics
}

/** Counts the checks by state now and then, for the gauge. */
export function startCheckMeasures(options: MeasureOptions): Repeat {
  const { clock, log, metrics } = options
  let measured: Health['checks'] | undefined
  metrics.gauge('gatehouse_ops_checks', 'Checks of the inventory by what is known of them.', () =>
    Object.entries(measured ?? {}).map(([state, { length }]) => [{ state }, length]),
  )
  async function measure(): Promise<void> {
    try {
      measured = (await readHealth(options, clock.now())).checks
    } catch (error) {
      // No figures: those of before would look as if all were still well.
      measured = undefined
      throw error
    }
  }
  const reports = reportsTo(log, 'checks not counted', 'checks are counted again')
  const measures = repeat(clock, MEASURE_MS, 'counting of checks', measure, reports)
  void measures.now()
  return measures
}
