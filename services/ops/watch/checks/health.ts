import * as Type from '../../../../kernel/schema.ts'
import type { Executor } from '../../../../db/client.ts'
import {
  checkQueries as q,
  CheckState,
  Source,
  type Definition,
  type State,
} from '../../../../db/ops/watch/checks.ts'
import type { Mute } from '../../../../db/ops/watch/mutes.ts'
import { nullable } from '../../../../db/sql-file.ts'
import { found } from '../../../../kernel/fault.ts'
import type { Clock } from '../../../../kernel/time.ts'
import type { Log } from '../../../../kernel/log.ts'
import type { Metrics } from '../../../../kernel/metrics.ts'
import { repeat, reportsTo, type Repeat } from '../../../../kernel/repeat.ts'
import { listMutes, muteOf } from '../mutes/mutes.ts'
import { MAX_CHECKS } from '../inventory/inventory.ts'
import { findDefinition, MAX_BY_HAND } from './definitions.ts'
import type { CheckSources } from './states.ts'

/** A check of the inventory, and what is known of it now. */
export interface CheckHealth extends CheckState {
  /** Whether it was run lately. */
  fresh: boolean
  /** What mutes it now. */
  mute: Mute | undefined
}

/** A service with its checks, the worst first. Nothing is known of one without checks. */
export interface ServiceHealth {
  name: string
  state: State
  checks: readonly CheckHealth[]
}

/**
 * The state of everything in the inventory: the worst of its services. `empty`: no service has
 * checks. `unchecked`: no check was run lately.
 */
export type HealthState = State | 'empty' | 'unchecked'

export interface Health {
  state: HealthState
  /** The worst first, those of one state by name. */
  services: readonly ServiceHealth[]
  /** All checks by their state. */
  checks: Readonly<Record<State, readonly CheckHealth[]>>
  /** The number of checks. */
  total: number
  /** The oldest of the last results. */
  checkedAt: Date | undefined
}

const WORST_FIRST = ['fail', 'warn', 'unknown', 'ok'] as const
/** Those of the inventory file and those that were made by hand. */
export const MAX_STATES = MAX_CHECKS + MAX_BY_HAND
/** A run may wait for others and take its time. */
const SLACK_MS = 120_000
const MEASURE_MS = 15_000
const NEVER = 'not checked yet'
const LONG_AGO = 'not checked lately; the log says why. It was ok then'

/** What is known of all checks, by service and name. */
export async function listHealth(db: Executor, now: Date): Promise<readonly CheckHealth[]> {
  const [states, mutes] = await Promise.all([
    q.listChecks(db, { id: null, now, limit: MAX_STATES }),
    listMutes(db, now),
  ])
  return states.map((state) => checkHealth(state, mutes, now))
}

/** The same of one check; throws 404. */
export async function findHealth(db: Executor, id: number, now: Date): Promise<CheckHealth> {
  const [state] = await q.listChecks(db, { id, now, limit: 1 })
  return checkHealth(found(state, 'check'), await listMutes(db, now), now)
}

/** Reads what is known of all checks in the inventory. */
export async function readHealth(sources: CheckSources, now: Date): Promise<Health> {
  const [{ services }, known] = await Promise.all([
    sources.inventory.current(),
    listHealth(sources.db, now),
  ])
  const byService = Map.groupBy(known, ({ service }) => service)
  const all = services.map(({ name }) => serviceHealth(name, byService.get(name) ?? []))
  const checks = all.flatMap((service) => service.checks)
  const times = checks.flatMap(({ checked_at }) => checked_at?.getTime() ?? [])
  return {
    state: stateOf(all, checks),
    services: all.toSorted((a, b) => byState(a, b) || (a.name < b.name ? -1 : 1)),
    checks: { ...NO_CHECKS, ...Object.groupBy(checks, ({ state }) => state) },
    total: checks.length,
    checkedAt: times.length === 0 ? undefined : new Date(Math.min(...times)),
  }
}

const NO_CHECKS: Health['checks'] = { ok: [], warn: [], fail: [], unknown: [] }

function serviceHealth(name: string, known: readonly CheckHealth[]): ServiceHealth {
  const checks = known.toSorted(byState)
  return { name, state: worstOf(checks), checks }
}

/** What is known now: that a check was ok long ago says nothing. */
function checkHealth(known: CheckState, mutes: readonly Mute[], now: Date): CheckHealth {
  const fresh = isFresh(known, now)
  const mute = muteOf(mutes, known, now)
  if (known.checked_at === null) return { ...known, fresh, mute, message: NEVER }
  if (fresh || known.state !== 'ok') return { ...known, fresh, mute }
  return { ...known, fresh, mute, state: 'unknown', message: `${LONG_AGO}: ${known.message}` }
}

/** Whether a check was run within two of its intervals. */
export function isFresh({ checked_at, every_s }: CheckState, now: Date): boolean {
  if (checked_at === null) return false
  return now.getTime() - checked_at.getTime() <= 2 * every_s * 1_000 + SLACK_MS
}

function byState(a: { state: State }, b: { state: State }): number {
  return badness(a.state) - badness(b.state)
}

/** The place of a state among all of them, the worst first. */
export function badness(state: State): number {
  return WORST_FIRST.indexOf(state)
}

function worstOf(parts: readonly { state: State }[]): State {
  return parts.toSorted(byState)[0]?.state ?? 'unknown'
}

function stateOf(services: readonly ServiceHealth[], checks: readonly CheckHealth[]): HealthState {
  if (checks.length === 0) return 'empty'
  return checks.some(({ fresh }) => fresh) ? worstOf(services) : 'unchecked'
}

const { id, service, name, type, state, since, message, every_s, muted_until } =
  CheckState.properties

/** A check as the API and the command line list it. */
export const ListedHealth = Type.Object({
  id,
  service,
  name,
  type,
  state,
  since,
  last_message: message,
  every_s,
  muted_until,
})
export type ListedHealth = Type.Static<typeof ListedHealth>

/** The same with what defines it. */
export const ShownHealth = Type.Object({
  ...ListedHealth.properties,
  source: Source,
  check: nullable(
    Type.Unsafe<Definition>({ type: 'object', description: 'null: the inventory file has it' }),
  ),
})
export type ShownHealth = Type.Static<typeof ShownHealth>

export function toListed(check: CheckHealth): ListedHealth {
  const { id, service, name, type, state, since, message, every_s, muted_until } = check
  const about = { id, service, name, type, state, since }
  return { ...about, last_message: message, every_s, muted_until }
}

/** One of them with what defines it; throws 404. */
export async function showHealth(db: Executor, id: number, now: Date): Promise<ShownHealth> {
  const check = await findHealth(db, id, now)
  return { ...toListed(check), source: check.source, check: await findDefinition(db, id) }
}

function isKnown({ state }: CheckHealth): boolean {
  return state !== 'unknown'
}

/** What the gauges of checks are made of. */
interface MeasureOptions extends CheckSources {
  clock: Clock
  log: Log
  metrics: Metrics
}

/** Reads the states of checks now and then, for the gauges. */
export function startCheckMeasures(options: MeasureOptions): Repeat {
  const { clock, log, metrics } = options
  let measured: Health['checks'] | undefined
  metrics.gauge('gatehouse_ops_checks', 'Checks of the inventory by what is known of them.', () =>
    Object.entries(measured ?? {}).map(([state, { length }]) => [{ state }, length]),
  )
  const known = () => Object.values(measured ?? {}).flatMap((checks) => checks.filter(isKnown))
  metrics.gauge(
    'gatehouse_ops_check_up',
    'Whether a check did not fail; none while unknown.',
    () => known().map(({ service, name, state }) => [{ service, name }, state === 'fail' ? 0 : 1]),
  )
  metrics.gauge('gatehouse_ops_check_seconds', 'How long the last run of a check took.', () =>
    known().map(({ service, name, ms }) => [{ service, name }, ms / 1_000]),
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
