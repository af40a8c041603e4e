import { isFull, NoAnswer, stateAfter, translate, type Backend } from './errors.ts'
import type { Level, Shares } from './levels.ts'
import type { ClientMetrics } from './metrics.ts'
import type { Connection } from './pool.ts'

/** What statements run with. */
export interface Runner {
  backend: Backend
  shares: Shares
  metrics: ClientMetrics
  /** Until then the database counts as away: a statement has found no space. */
  fullUntil: number
  /** Ends the statement that the embedded engine runs. A server does so by its own time-out. */
  cancel: () => void
  /** Called when a statement of the embedded engine has not ended by its deadline. */
  onLate: (name: string) => void
  /** Called when it has ended at last, with its whole time. */
  onLateEnd: (name: string, ms: number) => void
}

/** How long a database that had no space counts as away. */
const FULL_MS = 5_000

/** How long after its deadline the database has to end a statement. */
const GRACE_MS = 500

/**
 * Waits for an answer for as long as a statement may take. A stalled server must not hold a
 * request for ever. A server ends the statement by its own time-out, and the embedded engine when
 * it is asked to.
 */
export async function withDeadline<T>(
  runner: Runner,
  pending: PromiseLike<T>,
  level: Level = 'trusted',
): Promise<T> {
  const { deadlineMs } = runner.shares[level]
  const late = Promise.withResolvers<never>()
  let timer = setTimeout(() => {
    runner.cancel()
    timer = setTimeout(() => {
      late.reject(new NoAnswer(`no answer in ${deadlineMs} ms`))
    }, GRACE_MS)
  }, deadlineMs)
  try {
    return await Promise.race([pending, late.promise])
  } finally {
    clearTimeout(timer)
  }
}

/** Waits for the answer to a statement, notes the state of its connection, translates errors. */
export async function answerTo<T>(
  runner: Runner,
  connection: Connection,
  name: string,
  pending: PromiseLike<T>,
  level: Level = 'trusted',
): Promise<T> {
  const started = performance.now()
  try {
    return await withDeadline(runner, pending, level)
  } catch (error) {
    const failure = noteFailure(runner, connection, name, error)
    if (connection.state === 'late') reportLate(runner, name, pending, started)
    throw failure
  } finally {
    runner.metrics.seconds[level]((performance.now() - started) / 1_000)
  }
}

/** Notes what an error makes of its connection; gives what the caller gets. */
export function noteFailure(runner: Runner, connection: Connection, name: string, error: unknown) {
  if (isFull(error)) runner.fullUntil = performance.now() + FULL_MS
  const state = stateAfter(error, runner.backend)
  if (state !== 'kept') connection.state = state
  return translate(name, error)
}

function reportLate(runner: Runner, name: string, pending: PromiseLike<unknown>, started: number) {
  runner.onLate(name)
  const report = () => runner.onLateEnd(name, performance.now() - started)
  pending.then(report, report)
}
