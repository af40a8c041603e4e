import { checkQueries as q, type ClaimedCheck } from '../../../../db/ops/watch/checks.ts'
import { unavailable } from '../../../../kernel/fault.ts'
import type { Log } from '../../../../kernel/log.ts'
import type { Metrics } from '../../../../kernel/metrics.ts'
import { repeat, reportsTo } from '../../../../kernel/repeat.ts'
import type { Clock } from '../../../../kernel/time.ts'
import { renewMutes } from '../mutes/mutes.ts'
import { retriesOf } from './check.ts'
import { beatHash } from './heartbeat.ts'
import { NETWORK_TYPES, runCheck, timeoutOf, type Check, type CheckResult } from './run.ts'
import { createPlaces } from './slots.ts'
import {
  listChecks,
  runListed,
  recordResults,
  syncChecks,
  type CheckSources,
  type NamedResult,
  type ListedCheck,
} from './states.ts'

export interface CheckLoopOptions extends CheckSources {
  clock: Clock
  log: Log
  metrics: Metrics
}

/** The rounds of all checks, as others see them. */
export type CheckLoop = ReturnType<typeof startCheckLoop>

/** A check begins within a second of when it is due. */
const ROUND_MS = 500
/** Checks of the network that a round takes. */
const MAX_CLAIMED = 2_000
/** Checks that are tried at a time. They take no place of those that are due. */
const MAX_TRIED = 4
/** More than any check may take: a claim that is older is of an instance that has gone. */
const CLAIM_S = 120
/** Good results in a row that end a failure, however often it began in the last hour. */
const MAX_GOOD = 6
/** If a round, or a run beyond its time-out, is later than this, the process was suspended meanwhile. */
const SUSPENDED_MS = 10_000
/** Checks are behind when a round, or a check that is due, is this late. */
export const BEHIND_S = 60

/** A check that this process runs, with its newest claim. */
interface Taken {
  listed: ListedCheck
  claimed: ClaimedCheck
}

/** What is known of the rounds. */
interface Rounds extends CheckLoopOptions {
  /** The checks of the inventory, by service and name. */
  known: ReadonlyMap<string, ListedCheck>
  /** The heartbeats, by the hash of their token. */
  heartbeats: ReadonlyMap<string | undefined, ListedCheck>
  /** The text of the inventory that the table lists. */
  synced: string
  /** The checks that wait for a place or run, by id. */
  taken: Map<number, Taken>
  places: ReturnType<typeof createPlaces>
  /** How many are tried now. */
  tried: number
  /** Results that are not stored yet. */
  results: NamedResult[]
  lastRoundAt: Date
  /** Since when jobs can call: this process began then, or a suspension ended. */
  listensSince: Date
  /** When this process began, and when a round last succeeded, as the clock counts. */
  began: number
  succeeded: number
  /** How late the latest check of the last round was, in seconds. */
  late_s: number
  /** Aborted when the program stops. */
  signal: AbortSignal
}

/**
 * Runs the checks of the inventory by themselves, each on its own interval. Of several instances
 * one claims a check that is due. A check that was due while nothing ran is run once.
 */
export function startCheckLoop(options: CheckLoopOptions) {
  const { clock, log } = options
  const stopping = new AbortController()
  const began = clock.elapsed()
  const state = { synced: '', tried: 0, results: [], late_s: 0 }
  const none: ReadonlyMap<string, ListedCheck> = new Map()
  const rounds: Rounds = {
    ...options,
    ...state,
    taken: new Map(),
    places: createPlaces(),
    known: none,
    heartbeats: none,
    lastRoundAt: clock.now(),
    listensSince: clock.now(),
    began,
    succeeded: began,
    signal: stopping.signal,
  }
  const reports = reportsTo(log, 'checks do not run', 'checks run again')
  const repeated = repeat(clock, ROUND_MS, 'checks', () => round(rounds), reports)
  void repeated.now()
  return {
    /** Makes a round now; resolves when it is over. Checks that it has begun may still run. */
    round: repeated.now,
    /** The heartbeat whose token has this hash in hex. */
    heartbeat: (hash: string) => rounds.heartbeats.get(hash),
    /** Runs a check once that is not listed yet; stores nothing. */
    tryOnce: (check: Check) => tryOnce(rounds, check),
    /** Why states of checks may be old, in a line; undefined while all run in time. */
    problem: () => problemOf(rounds),
    /** Resolves when nothing more is stored. Runs that have not ended are dropped. */
    close() {
      stopping.abort()
      return repeated.stop()
    },
  }
}

/** One round: what has been found is stored, and what is due begins. */
async function round(rounds: Rounds): Promise<void> {
  const { db, clock } = rounds
  const now = clock.now()
  if (now.getTime() - rounds.lastRoundAt.getTime() > SUSPENDED_MS) rounds.listensSince = now
  rounds.lastRoundAt = now
  await sync(rounds)
  await renewMutes(db, now)
  await store(rounds)
  const claim = { now: clock.now(), seconds: CLAIM_S, network_types: NETWORK_TYPES }
  const claimed = [
    ...(await q.claimChecks(db, { ...claim, network: true, limit: MAX_CLAIMED })),
    ...(await q.claimChecks(db, {
      ...claim,
      network: false,
      limit: rounds.places.freePrograms(),
    })),
  ]
  // One that was added since the list was read: without it, it would run once its claim has lapsed.
  if (claimed.some((check) => !rounds.known.has(keyOf(check)))) await sync(rounds)
  rounds.late_s = Math.max(0, ...claimed.map(({ late_s }) => late_s))
  for (const check of claimed) take(rounds, check)
  rounds.succeeded = clock.elapsed()
}

/** Makes the table list what the inventory has, if that has changed. */
async function sync(rounds: Rounds): Promise<void> {
  const listed = await listChecks(rounds)
  const text = JSON.stringify(listed)
  if (text === rounds.synced) return
  await rounds.db.transaction((tx) => syncChecks(tx, listed, rounds.clock.now()))
  rounds.known = new Map(listed.map((one) => [keyOf(one), one]))
  rounds.heartbeats = new Map(listed.map((one) => [beatHash(one.check), one]))
  rounds.synced = text
}

function keyOf({ service, name }: { service: string; name: string }): string {
  return JSON.stringify([service, name])
}

/** Stores what was found since the last round; what can't be stored is kept for the next one. */
async function store(rounds: Rounds): Promise<void> {
  const { db, clock, results } = rounds
  if (results.length === 0) return
  const given = [...results]
  await db.transaction((tx) => recordResults(tx, given, { session: null, now: clock.now() }))
  results.splice(0, given.length)
}

/** Runs a check once there is a place for it. A claim that lapsed while it waited is renewed. */
function take(rounds: Rounds, claimed: ClaimedCheck): void {
  const listed = rounds.known.get(keyOf(claimed))
  // The inventory of another instance has it; the claim lapses.
  if (listed === undefined) return
  const before = rounds.taken.get(claimed.id)
  if (before !== undefined && isSame(before.listed, listed)) {
    before.claimed = claimed
    return
  }
  const taken = { listed, claimed }
  rounds.taken.set(claimed.id, taken)
  rounds.places.add(listed.check, () => runTaken(rounds, taken))
}

function isSame(one: ListedCheck, other: ListedCheck): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other)
}

/** A check that has another definition meanwhile is taken again: what its former one finds does not count. */
async function runTaken(rounds: Rounds, taken: Taken): Promise<void> {
  const { signal, results } = rounds
  const { id } = taken.claimed
  const isCurrent = (): boolean => !signal.aborted && rounds.taken.get(id) === taken
  if (!isCurrent()) return
  const { listed } = taken
  const result = await runAwake(rounds, listed)
  if (!isCurrent()) return
  rounds.taken.delete(id)
  const { service, name, claimed_until, asked } = taken.claimed
  const claim = { until: claimed_until, ...resultsThatCount(listed.check), asked }
  results.push({ ...result, service, name, claim })
}

/** Runs a check again if the process was suspended meanwhile: its time-out has passed without a cause. */
async function runAwake(rounds: Rounds, listed: ListedCheck): Promise<CheckResult> {
  const { clock, signal, listensSince } = rounds
  const began = clock.now().getTime()
  const result = await runListed(rounds, listed, { signal, marker: undefined, listensSince })
  const took = clock.now().getTime() - began
  return took > timeoutOf(listed.check) + SUSPENDED_MS ? runAwake(rounds, listed) : result
}

/** Without a bound, a visitor of the page could open any number of connections. */
async function tryOnce(rounds: Rounds, check: Check): Promise<CheckResult> {
  if (rounds.tried >= MAX_TRIED) {
    throw unavailable(`${MAX_TRIED} checks are tried already: try again in a minute`, 60)
  }
  const { signal, redact, clock } = rounds
  rounds.tried++
  // What a job says of itself needs the address that a stored check has.
  const beat = async () => undefined
  const result = await runCheck(check, {
    signal,
    marker: undefined,
    redact,
    beat,
    listensSince: rounds.listensSince,
    now: clock.now,
  })
  rounds.tried--
  return result
}

/** How many results in a row count. What a job says of itself counts at once. */
function resultsThatCount(check: ListedCheck['check']) {
  const says = check.type === 'heartbeat'
  return { bad: says ? 1 : retriesOf(check) + 1, good: says ? 1 : MAX_GOOD }
}

function problemOf({ clock, began, succeeded, late_s }: Rounds): string | undefined {
  const now = clock.elapsed()
  const silent_s = Math.round((now - succeeded) / 1_000)
  if (silent_s > BEHIND_S) return `no check has run for ${silent_s} s`
  // What was due before this process ran is no fault of its rounds.
  const late = Math.round(Math.min(late_s, (now - began) / 1_000))
  return late > BEHIND_S ? `checks run ${late} s late` : undefined
}
