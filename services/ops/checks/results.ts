import { hash } from 'node:crypto'
import type { Database, Executor } from '../../../db/client.ts'
import { checkQueries as q } from '../../../db/ops/checks.ts'
import { eventQueries } from '../../../db/ops/events.ts'
import type { Clock } from '../../../kernel/time.ts'
import type { Redact } from '../redact.ts'
import { addEvent } from '../events.ts'
import { nameOf, type Check, type CheckResult } from './run.ts'

/** Characters of a check's name. */
const MAX_NAME = 200

/** The result of a check, with the names by which it is stored. */
export interface NamedResult extends CheckResult {
  service: string
  name: string
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
 * Stores results of checks, with events for those that fail and for those that are good again.
 * Operators are notified when a critical failure begins, and when it ends. A failure that lasts
 * has an event again if `always`.
 */
export async function recordResults(
  tx: Executor,
  results: readonly NamedResult[],
  { session, now, always }: { session: number; now: Date; always: boolean },
): Promise<void> {
  const states = results.map(({ service, name, ok, message, ms }) => {
    return { service, name, ok, message, ms }
  })
  const before = await q.saveCheckStates(tx, { states, session, now })
  for (const check of results) {
    const { service, name, ok, message, level } = check
    const last = before.find((state) => state.service === service && state.name === name)
    const told = last?.told_event ?? null
    const what = { session, service, now }
    const begins = level === 'critical' && told === null
    if (!ok && (always || begins || last?.ok !== false)) {
      const event = { ...what, level, message: `${name}: ${message}` }
      const { id } = await addEvent(tx, event, { notify: begins, waits: false })
      if (begins) await q.saveNotifiedEvent(tx, { service, name, event: id })
    }
    if (ok && last?.ok === false) {
      const event = { ...what, level: 'info', message: `${name} is good again: ${message}` }
      await addEvent(tx, event, { notify: told !== null })
      if (told === null) continue
      await q.saveNotifiedEvent(tx, { service, name, event: null })
      // A receiver that was away must not be told of the beginning after the end.
      await eventQueries.withdrawNotice(tx, { event: told })
    }
  }
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
  const about = { session: session.id, now: clock.now(), always: false }
  await db.transaction((tx) => recordResults(tx, results, about))
}
