import { setTimeout as pause } from 'node:timers/promises'
import type { Database } from '../../../db/client.ts'
import type { Reader } from '../../../db/ops/alerts.ts'
import { freeBrief, takeBrief } from '../../../db/ops/briefs.ts'
import type { Clock } from '../../../kernel/time.ts'
import { messageOf, type Log } from '../../../kernel/log.ts'

export interface BriefTurnsOptions {
  readonly db: Database
  readonly clock: Clock
  readonly log: Log
  readonly reader: Reader
}

/** When somebody who waits for a turn, or has it, gives up. */
export interface Deadline {
  readonly signal: AbortSignal
  readonly at: Date
}

/** Does some work when its turn comes, in the order of asking; undefined when the deadline comes first. */
export type InTurn = <T>(deadline: Deadline, work: () => Promise<T>) => Promise<T | undefined>

/** How often a turn is asked for that another instance has. */
const LOOK_MS = 250

/**
 * Has one brief at a time written, over all instances on a database. Within this process each waits for
 * the one before, which ends by its own, earlier deadline; the turn among instances is in the database,
 * and ends at its deadline when its process dies.
 */
export function openBriefTurns({ db, clock, log, reader }: BriefTurnsOptions): InTurn {
  let last: Promise<void> = Promise.resolve()

  async function take({ signal, at }: Deadline): Promise<boolean> {
    while (!signal.aborted) {
      if (await takeBrief(db, reader, clock.now(), at)) return true
      // Rejects when the deadline comes: then there is no turn.
      await pause(LOOK_MS, undefined, { signal }).catch(() => undefined)
    }
    return false
  }

  async function free(): Promise<void> {
    try {
      await freeBrief(db, reader)
    } catch (error) {
      log.warn('turn of an alert not given back', { error: messageOf(error) })
    }
  }

  return async (deadline, work) => {
    const before = last
    const { promise: over, resolve: end } = Promise.withResolvers<void>()
    last = over
    try {
      await before
      if (!(await take(deadline))) return undefined
      try {
        return await work()
      } finally {
        await free()
      }
    } finally {
      end()
    }
  }
}
