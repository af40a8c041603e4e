import { Fault, Unavailable } from '../fault.ts'
import { messageOf, type Log } from '../log.ts'
import { CallError } from './server.ts'

/** Ends the place of a call among those that run. */
type Leave = () => void

/** How the calls of an endpoint are bounded, and how its failures are told. */
export interface CallRules {
  log: Log
  /** What is logged as the callee: the name of the tool. */
  tool: string
  /** Admits a call; undefined when too many are running. */
  admit: () => Leave | undefined
  tooMany: string
  /** The code of an expected failure, for programs. */
  codeOf: (fault: Fault) => string
}

/**
 * A call within its bound, where every expected failure is a CallError. Other errors are bugs: they
 * pass.
 */
export function boundedCall<A extends unknown[], T>(
  { log, tool, admit, tooMany, codeOf }: CallRules,
  call: (...args: A) => Promise<T>,
) {
  return async (...args: A): Promise<T> => {
    const leave = admit()
    if (leave === undefined) throw new CallError('rate_limited', tooMany)
    try {
      return await call(...args)
    } catch (error) {
      if (error instanceof Fault) throw new CallError(codeOf(error), error.message)
      if (!(error instanceof Unavailable)) throw error
      log.warn('unavailable', { tool, error: messageOf(error) })
      throw new CallError('internal', 'The database is out of reach; try again shortly.')
    } finally {
      leave()
    }
  }
}

/** Counts the running calls of each key, and admits `max` of them at a time. */
export function createCallLimit(max: number) {
  const running = new Map<string, number>()
  return (key: string): Leave | undefined => {
    const calls = running.get(key) ?? 0
    if (calls >= max) return undefined
    running.set(key, calls + 1)
    return () => {
      const others = (running.get(key) ?? 0) - 1
      if (others > 0) running.set(key, others)
      else running.delete(key)
    }
  }
}
