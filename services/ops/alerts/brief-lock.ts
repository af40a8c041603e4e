import { setTimeout as pause } from 'node:timers/promises'
import type { Database } from '../../../db/client.ts'
import { alertQueries as q } from '../../../db/ops/alerts.ts'
import { messageOf, type Log } from '../../../kernel/log.ts'
import type { Clock } from '../../../kernel/time.ts'

/** A process of Gatehouse, as sessions and alerts name their holder. */
export interface Holder {
  readonly holder: string
  readonly machine: string
}

export interface BriefLockOptions {
  readonly db: Database
  readonly clock: Clock
  readonly log: Log
  /** This process. */
  readonly reader: Holder
}

/** When work under the lock, or waiting for the lock, is given up. */
export interface Deadline {
  readonly signal: AbortSignal
  readonly at: Date
}

/** Runs work under the lock, in the order of the calls. Undefined if the deadline passes first. */
export type WithLock = <T>(deadline: Deadline, work: () => Promise<T>) => Promise<T | undefined>

/** How often to try for a lock that another instance holds. */
const RETRY_MS = 250

/**
 * Only one brief is written at a time, over all instances on a database. Calls within this process
 * queue up. The lock among instances is in the database, and expires at its deadline if the process
 * dies.
 */
export function openBriefLock({ db, clock, log, reader }: BriefLockOptions): WithLock {
  let last: Promise<void> = Promise.resolve()

  async function take({ signal, at: until }: Deadline): Promise<boolean> {
    while (!signal.aborted) {
      const taken = await q.takeBriefLock(db, { ...reader, now: clock.now(), until })
      if (taken !== undefined) return true
      // An aborted pause rejects, and then the loop ends.
      await pause(RETRY_MS, undefined, { signal }).catch(() => undefined)
    }
    return false
  }

  async function free(): Promise<void> {
    try {
      await q.freeBriefLock(db, reader)
    } catch (error) {
      log.warn('lock for briefs not released', { error: messageOf(error) })
    }
  }

  return async (deadline, work) => {
    const previous = last
    const { promise, resolve: leaveQueue } = Promise.withResolvers<void>()
    last = promise
    try {
      await previous
      if (!(await take(deadline))) return undefined
      try {
        return await work()
      } finally {
        await free()
      }
    } finally {
      leaveQueue()
    }
  }
}
