import { hash } from 'node:crypto'
import type { Database, Executor } from '../../../../db/client.ts'
import {
  checkQueries as q,
  type HeldCheck,
  type Source,
  type State,
} from '../../../../db/ops/watch/checks.ts'
import type { Level } from '../../../../db/notices.ts'
import { objectOf } from '../../../../kernel/json.ts'
import type { Clock } from '../../../../kernel/time.ts'
import type { Redact, Redaction } from '../../redact.ts'
import { addEvent } from '../../events.ts'
import type { InventorySource } from '../inventory/inventory.ts'
import { beginNotice, endNotice } from '../../notices.ts'
import { everySeconds, type CheckContext, type Investigate } from './check.ts'
import { BY_HAND, nameOf, runCheck, type Check, type CheckResult } from './run.ts'

/** Characters of a check's name. */
const MAX_NAME = 200
/** As many as an inventory can have. */
const MAX_LOST = 20_000

/** A state in a line for people and models, as `gatehouse check` writes it. */
export const STATE_WORDS: Readonly<Record<State, string>> = {
  ok: 'ok',
  warn: 'warn',
  fail: 'FAIL',
  unknown: 'unknown',
}

/** The result of a check, with the names by which it is stored. */
export interface NamedResult extends CheckResult {
  service: string
  name: string
  /** Of a run in a round; undefined for one that a session made. */
  claim?: Claim
}

/** The claim by which an instance runs a check. */
interface Claim {
  /** A result counts as long as its claim is the newest one. */
  until: Date
  /** Bad results in a row before it counts as failed. */
  bad: number
  /** Good results in a row that end a failure, at most. */
  good: number
  /** Somebody has asked for the run. */
  asked: boolean
}

/** Who ran the checks, and when. A session is null for the round of all checks. */
interface Occasion {
  session: number | null
  now: Date
}

/**
 * The name of a check in the database. One without a name is named by what it checks, which may be
 * too long for an index.
 */
export function storedName(check: Check, redact: Redact): string {
  const name = redact(nameOf(check))
  if (name.length <= MAX_NAME) return name
  const rest = hash('sha256', name).slice(0, 16)
  const start = name.slice(0, MAX_NAME - rest.length - 1)
  return `${start.toWellFormed()}…${rest}`
}

/** What knows the checks of the inventory. */
export interface CheckSources {
  db: Database
  inventory: Pick<InventorySource, 'current'>
  redact: Redaction
}

/** A check of the inventory by its names in the database. */
export interface ListedCheck {
  service: string
  name: string
  check: Check
  source: Source
  /** The tier of the session that its failure starts; null: none. */
  investigate: number | null
}

/** All checks of the inventory. */
export async function listChecks(sources: CheckSources): Promise<readonly ListedCheck[]> {
  const { services } = await sources.inventory.current()
  return services.flatMap(({ name: service, checks, investigate: ofService }) =>
    checks.map((check) => {
      const source = check[BY_HAND] === undefined ? 'file' : 'hand'
      const investigate = tierOf(check.investigate ?? ofService)
      return { service, name: storedName(check, sources.redact), check, source, investigate }
    }),
  )
}

function tierOf(investigate: Investigate = false): number | null {
  if (typeof investigate === 'number') return investigate
  return investigate ? 1 : null
}

/** Runs a check of the inventory. Never rejects: an error is a finding. */
export function runListed(
  { db, clock, redact }: CheckSources & { clock: Clock },
  { service, name, check }: Pick<ListedCheck, 'service' | 'name' | 'check'>,
  { signal, marker, listensSince = PROCESS_BEGAN }: RunContext,
): Promise<CheckResult> {
  const beat = () => q.findBeat(db, { service, name })
  return runCheck(check, { signal, marker, redact, beat, listensSince, now: clock.now })
}

/** Who runs a check. A session does not know when the machine slept: its jobs could call since the process began. */
type RunContext = Pick<CheckContext, 'signal' | 'marker'> &
  Partial<Pick<CheckContext, 'listensSince'>>

const PROCESS_BEGAN = new Date(performance.timeOrigin)

/**
 * Makes the table list these checks. Where the failure of a check that is gone was notified, its
 * notice ends: no later result would end it.
 */
export async function syncChecks(
  tx: Executor,
  listed: readonly ListedCheck[],
  now: Date,
): Promise<void> {
  const checks = listed.map(({ service, name, check, source, investigate }) => {
    return { service, name, source, investigate, ...columnsOf(check) }
  })
  await q.syncChecks(tx, { checks, now })
  for (const { id, service, name } of await q.takeLostChecks(tx, { limit: MAX_LOST })) {
    const message = `${name} is no longer checked`
    await endNotice(tx, { session: null, service, level: 'info', message, now }, keyOf(id))
  }
}

/** What the table has of a definition. Values of headers may be secrets: no hash of them is kept. */
export function columnsOf(check: Check) {
  const headers = 'headers' in check ? Object.keys(objectOf(check.headers)) : undefined
  const version = hash('sha256', JSON.stringify({ ...check, headers })).slice(0, 16)
  return { type: check.type, every_s: everySeconds(check), version }
}

/** What becomes of a check by a result. */
interface Decision {
  state: State
  changed: boolean
  opposing: number
  /** Another run follows soon: the result contradicts the state, and does not count alone. */
  soon: boolean
}

/**
 * Decides what state a check has after a result. A bad result counts once the retries were bad, too.
 * A failure ends by as many good results in a row as it has begun within the last hour, so that a
 * check that flaps counts as failed. A run that was asked for counts at once: its result is acted on.
 */
function decide(held: HeldCheck, { state, claim }: NamedResult): Decision {
  if (held.checked_at === null) return { state, changed: true, opposing: 0, soon: false }
  if (state === held.state) return { state, changed: false, opposing: 0, soon: false }
  const opposing = held.opposing + 1
  if (claim === undefined || claim.asked || opposing >= resultsNeeded(state, claim, held)) {
    return { state, changed: true, opposing: 0, soon: false }
  }
  return { state: held.state, changed: false, opposing, soon: true }
}

function resultsNeeded(state: State, { bad, good }: Claim, { begun }: HeldCheck): number {
  return state === 'ok' ? Math.min(Math.max(1, begun), good) : bad
}

/**
 * Stores results of checks, with an event where a state changes. Operators are notified when a
 * critical failure begins, and when it ends; while the check is muted, its beginning is not told.
 * A result of a round whose claim is another instance's by now is dropped.
 */
export async function recordResults(
  tx: Executor,
  results: readonly NamedResult[],
  occasion: Occasion,
): Promise<void> {
  const { session, now } = occasion
  const names = results.map(({ service, name }) => ({ service, name }))
  const held = await q.lockChecks(tx, { checks: names, now, limit: names.length })
  const judged = results.flatMap((result) => {
    const { service, name } = result
    const check = held.find((one) => one.service === service && one.name === name)
    // A check that the inventory has lost meanwhile.
    if (check === undefined || !isCurrent(check, result)) return []
    return [{ result, check, decision: decide(check, result) }]
  })
  if (judged.length === 0) return
  const rows = judged.map(({ result, check: { id }, decision }) => {
    const { state: found, message, ms, claim } = result
    return { id, found, message, ms, asked: claim?.asked === true, ...decision }
  })
  await q.saveResults(tx, { results: rows, now, session })
  const changed = rows.filter((row) => row.changed)
  if (changed.length > 0) await q.beginPeriods(tx, { ids: changed.map(({ id }) => id) })
  for (const { result, check, decision } of judged) {
    if (result.state === decision.state) await recordEvent(tx, result, check, occasion)
  }
}

function isCurrent({ claimed_until }: HeldCheck, { claim }: NamedResult): boolean {
  return claim === undefined || claimed_until?.getTime() === claim.until.getTime()
}

/** Records what a result that counts means after the state before. */
async function recordEvent(
  tx: Executor,
  { service, name, state, message, level }: NamedResult,
  { id: check, state: before, checked_at, told_event: told, muted }: HeldCheck,
  { session, now }: Occasion,
): Promise<void> {
  const about = { session, service, now }
  const isFirst = checked_at === null
  const wasBad = before === 'fail' || before === 'warn'
  if (state === 'unknown') {
    // It lasts until somebody mends it: an event for each run would bury the others.
    if (before === 'unknown' && !isFirst) return
    const known: Level = level === 'critical' ? 'warning' : level
    await addEvent(tx, { ...about, level: known, message: `${name} is unknown: ${message}` })
    return
  }
  if (state !== 'ok') {
    const notify = level === 'critical' && told === null && !muted
    if (!notify && wasBad) return
    const event = { ...about, level, message: `${name}: ${message}` }
    if (notify) {
      const { id } = await beginNotice(tx, event, keyOf(check), { path: `/checks/${check}` })
      await q.saveNotifiedEvent(tx, { id: check, event: id, now })
    } else await addEvent(tx, event, { notify: false, waits: false })
    return
  }
  if (isFirst || before === 'ok') return
  // Operators were notified of a failure that may have become unknown since.
  const end = wasBad || told !== null ? 'is good again' : 'is known again'
  const event = { ...about, level: 'info', message: `${name} ${end}: ${message}` } as const
  await endNotice(tx, event, keyOf(check))
  if (told !== null) await q.saveNotifiedEvent(tx, { id: check, event: null, now })
}

/** The key of the notice that a check fails. */
function keyOf(check: number): string {
  return `check ${check}`
}

/** What runs checks: a session, or an operation after one, whose session may be removed. */
interface CheckingSession {
  clock: Clock
  job: { session: { id: number | null }; signal: AbortSignal }
}

/** Records the checks that it ran. An interrupted check says nothing about its service. */
export async function saveResults(
  sources: CheckSources & CheckingSession,
  results: readonly NamedResult[],
): Promise<void> {
  const { db, clock, job } = sources
  if (job.signal.aborted) return
  const now = clock.now()
  // The inventory may have changed since the last round.
  const listed = await listChecks(sources)
  await db.transaction(async (tx) => {
    await syncChecks(tx, listed, now)
    await recordResults(tx, results, { session: job.session.id, now })
  })
}
