import type { Context } from './context.ts'
import type { Log } from '../log.ts'
import type { Metrics } from '../metrics.ts'

/** Counts and logs the requests of a listener. */
export interface RequestLog {
  /** `started` is of `performance.now()`; `bytes` is absent for streams. */
  answered(context: Context, started: number, status: number, bytes: number | undefined): void
  /** Bytes that are no request were refused. */
  malformed(requestId: string, status: number, client: string): void
}

/**
 * The request log of a service's listener. Repeated refusals are logged once a second; metrics
 * count all.
 */
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

/** Log lines that any client can cause without end. */
export type RepeatedLine = 'request' | 'unavailable'

/** Allows one line a second of each kind, so that a flood does not fill the disk. */
export interface LogLimit {
  /**
   * Whether a line may be written. Lines left out are counted, and the count is logged every
   * second.
   */
  allows(line: RepeatedLine, route: string, status: number): boolean
}

const SECOND_MS = 1_000

/** The limit of a service's listener. A kind is a line, a route's pattern and a status. */
export function createLogLimit(service: string, log: Log): LogLimit {
  /** How many lines were left out in this second, by kind. */
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

export interface HttpMetrics {
  finished(service: string, route: string, status: number, seconds: number): void
}

/** The series of one service: by route and status, and the time of all. */
interface ServiceSeries {
  readonly requests: Map<string, Map<number, () => void>>
  readonly observe: (seconds: number) => void
}

/** Counts and times requests by service, route pattern and status. */
export function createHttpMetrics(metrics: Metrics): HttpMetrics {
  const requests = metrics.counter('gatehouse_http_requests', 'Requests answered.')
  const seconds = metrics.histogram('gatehouse_http_request_seconds', 'Time to answer a request.')
  const services = new Map<string, ServiceSeries>()

  return {
    finished(service, route, status, elapsed) {
      const known = getOrAdd(services, service, () => {
        return { requests: new Map(), observe: seconds.series({ service }) }
      })
      const routes = getOrAdd(known.requests, route, () => new Map<number, () => void>())
      const count = getOrAdd(routes, status, () =>
        requests.series({ service, route, status: String(status) }),
      )
      count()
      known.observe(elapsed)
    },
  }
}

/** A map's value, created on first use. */
function getOrAdd<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const known = map.get(key)
  if (known !== undefined) return known
  const value = make()
  map.set(key, value)
  return value
}
