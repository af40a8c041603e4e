import { hash } from 'node:crypto'
import type { Database, Executor } from '../../../db/client.ts'
import { checkQueries as q, type PreviousState, type State } from '../../../db/ops/checks.ts'
import { eventQueries, type Level } from '../../../db/ops/events.ts'
import type { Clock } from '../../../kernel/time.ts'
import type { Redact } from '../redact.ts'
import { addEvent } from '../events.ts'
import { nameOf, type Check, type CheckResult } from './run.ts'

/** Characters of a check's name. */
const MAX_NAME = 200

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
}

/** A check whose state is another one than at the look before. */
export interface Change extends Pick<NamedResult, 'service' | 'name'> {
  from: State
  to: State
}

/** What is recorded with results. */
interface Occasion {
  session: number
  now: Date
  /** A check that is still not as it should be has an event again. */
  always: boolean
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

/**
 * Stores results of checks, with events of what is not ok and of what is good again; gives what
 * has changed. Operators are notified when a critical failure begins, and when it ends.
 */
export async function recordResults(
  tx: Executor,
  results: readonly NamedResult[],
  occasion: Occasion,
): Promise<readonly Change[]> {
  const { session, now } = occasion
  const states = results.map(({ service, name, state, message, ms }) => {
    return { service, name, state, message, ms }
  })
  const before = await q.saveCheckStates(tx, { states, session, now })
  const changes: Change[] = []
  for (const check of results) {
    const { service, name, state } = check
    const last = before.find((one) => one.service === service && one.name === name)
    await recordEvent(tx, check, last, occasion)
    if (last === undefined || last.state === state) continue
    changes.push({ service, name, from: last.state, to: state })
  }
  return changes
}

/** Records what a result means after the last one of the same check. */
async function recordEvent(
  tx: Executor,
  { service, name, state, message, level }: NamedResult,
  last: PreviousState | undefined,
  { session, now, always }: Occasion,
): Promise<void> {
  const about = { session, service, now }
  const told = last?.told_event ?? null
  const wasBad = last?.state === 'fail' || last?.state === 'warn'
  if (state === 'unknown') {
    // It lasts until somebody mends it: an event in each session would bury the others.
    if (last?.state === 'unknown') return
    const known: Level = level === 'critical' ? 'warning' : level
    await addEvent(tx, { ...about, level: known, message: `${name} is unknown: ${message}` })
    return
  }
  if (state !== 'ok') {
    const begins = level === 'critical' && told === null
    if (!always && !begins && wasBad) return
    const event = { ...about, level, message: `${name}: ${message}` }
    const { id } = await addEvent(tx, event, { notify: begins, waits: false })
    if (begins) await q.saveNotifiedEvent(tx, { service, name, event: id })
    return
  }
  if (last === undefined || last.state === 'ok') return
  // Operators were notified of a failure that may have become unknown since.
  const end = wasBad || told !== null ? 'is good again' : 'is known again'
  const event = { ...about, level: 'info', message: `${name} ${end}: ${message}` } as const
  await addEvent(tx, event, { notify: told !== null })
  if (told === null) return
  await q.saveNotifiedEvent(tx, { service, name, event: null })
  // A receiver that was away must not get the beginning after the end.
  await eventQueries.withdrawNotice(tx, { event: told })
}

/** What runs single checks for a session. */
interface CheckRunner {
  db: Database
  clock: Clock
  job: { session: { id: number }; signal: AbortSignal }
}

/**
 * Records checks that a session ran one by one, perhaps again and again: only changes have events.
 * An interrupted check says nothing about its service.
 */
export async function saveResults(
  { db, clock, job: { session, signal } }: CheckRunner,
  results: readonly NamedResult[],
): Promise<void> {
  if (signal.aborted) return
  const occasion = { session: session.id, now: clock.now(), always: false }
  await db.transaction((tx) => recordResults(tx, results, occasion))
}
