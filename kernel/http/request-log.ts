import type { Context } from './context.ts'
import type { HttpMetrics } from './http-metrics.ts'
import type { Log } from '../log.ts'

/** What a listener counts and logs of each request, when all of its turn have left. */
export interface RequestLog {
  /** `started` is of `performance.now()`; `bytes` is absent where nobody counted them. */
  answered(context: Context, started: number, status: number, bytes: number | undefined): void
  /** Of what could not be read as a request. */
  malformed(requestId: string, status: number, client: string): void
}

/** Makes the request log of a service's listener. Refusals that repeat are limited; each is counted in the metrics. */
export function createRequestLog(
  service: string,
  log: Log,
  limit: LogLimit,
  metrics: HttpMetrics,
): RequestLog {
  return {
    answered({ requestId, method, route, client, peer }, started, status, bytes) {
      const elapsed = performance.now() - started
      metrics.finished(service, route, status, elapsed / 1000)
      if (status >= 400 && !limit.allows('request', route, status)) return
      log.info('request', {
        request_id: requestId,
        service,
        method,
        route,
        status,
        ms: Math.round(elapsed * 10) / 10,
        bytes,
        client,
        peer: peer === client ? undefined : peer,
      })
    },
    malformed(requestId, status, client) {
      const route = '(malformed)'
      if (!limit.allows('request', route, status)) return
      log.info('request', { request_id: requestId, service, route, status, client })
    },
  }
}

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
