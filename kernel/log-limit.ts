import type { Log } from './log.ts'

/** Lines that anybody who sends requests can repeat without end. */
export type RepeatedLine = 'request' | 'unavailable'

/** Writes one line a second of each kind, so that a flood fills no disk. */
export interface LogLimit {
  /** Whether a line may be written; one that may not is counted, and the count is logged every second. */
  allows(line: RepeatedLine, route: string, status: number): boolean
}

const SECOND_MS = 1_000

/** The limit of a service's listener; kinds are a line, a route's pattern and a status. */
export function createLogLimit(service: string, log: Log): LogLimit {
  /** Lines left out in this second, of the kinds that were written in it. */
  const leftOut = new Map<string, number>()

  return {
    allows(line, route, status) {
      const kind = `${line} ${status} ${route}`
      const count = leftOut.get(kind)
      leftOut.set(kind, count === undefined ? 0 : count + 1)
      if (count !== undefined) return false
      const timer = setInterval(() => {
        const lines = leftOut.get(kind) ?? 0
        if (lines > 0) {
          log.info('lines left out', { service, line, route, status, lines })
          leftOut.set(kind, 0)
        } else {
          leftOut.delete(kind)
          clearInterval(timer)
        }
      }, SECOND_MS)
      timer.unref()
      return true
    },
  }
}
