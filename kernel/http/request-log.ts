import { createConnectionMetrics, type ConnectionMetrics } from './connection-limit.ts'
import type { Context } from './context.ts'
import type { Log } from '../log.ts'
import { actorText } from '../actor.ts'
import type { Counter, Histogram, Metrics } from '../metrics.ts'

/** Counts and logs the requests of a listener. */
export type RequestLog = ReturnType<typeof createRequestLog>

/**
 * The request log of a service's listener. Repeated refusals are logged once a second; metrics
 * count all.
 */
export function createRequestLog(
  service: string,
  log: Log,
  allows: LogLimit,
  metrics: HttpMetrics,
) {
  /** The series of each route and status: their labels are looked up once. */
  const routes = new Map<string, Map<number, Measured>>()

  function measure({ route, kind }: Context, status: number, seconds: number): void {
    const statuses = routes.getOrInsertComputed(route, () => new Map<number, Measured>())
    const { count, observe } = statuses.getOrInsertComputed(status, () => ({
      count: metrics.requests.series({ service, route, status: String(status) }),
      observe: metrics.seconds.series({ service, kind: measuredKind(kind, status) }),
    }))
    count()
    observe(seconds)
  }

  return {
    /** `started` is of `performance.now()`; `bytes` is absent for streams. */
    answered(context: Context, started: number, status: number, bytes: number | undefined): void {
      const { requestId, method, route, client, peer, actor } = context
      const elapsed = performance.now() - started
      measure(context, status, elapsed / 1000)
      if (status >= 400 && !allows('request', route, status)) return
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
        user: actor.kind === 'user' || actor.kind === 'token' ? actorText(actor) : undefined,
      })
    },
    /** Bytes that are no request were refused. */
    malformed(requestId: string, status: number, client: string): void {
      const route = '(malformed)'
      if (!allows('request', route, status)) return
      log.info('request', { request_id: requestId, service, route, status, client })
    },
  }
}

/** The series of a route and status. */
interface Measured {
  count: () => void
  observe: (seconds: number) => void
}

/** Refusals cost next to nothing: a flood of them would hide how slow what is accepted has become. */
function measuredKind(kind: Context['kind'], status: number) {
  return kind !== undefined && status < 400 ? kind : 'other'
}

/** Log lines that any client can cause without end. */
type RepeatedLine = 'request' | 'unavailable'

/**
 * Whether a line may be written: one a second of each kind, so that a flood does not fill the
 * disk. Lines left out are counted, and the count is logged every second.
 */
export type LogLimit = (line: RepeatedLine, route: string, status: number) => boolean

const SECOND_MS = 1_000

/** The limit of a service's listener. A kind is a line, a route's pattern and a status. */
export function createLogLimit(service: string, log: Log): LogLimit {
  /** How many lines were left out in this second, by kind. */
  const leftOut = new Map<string, number>()

  return (line, route, status) => {
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
  }
}

/** The requests of all listeners, by service. */
export interface HttpMetrics {
  requests: Counter
  seconds: Histogram
  connections: ConnectionMetrics
}

export function createHttpMetrics(metrics: Metrics): HttpMetrics {
  return {
    requests: metrics.counter('gatehouse_http_requests', 'Requests answered.'),
    seconds: metrics.histogram('gatehouse_http_request_seconds', 'Time to answer a request.'),
    connections: createConnectionMetrics(metrics),
  }
}

/** Ids of requests: unique in a process, and hardly ever the same in another. */
export function requestIds() {
  const start = Math.random().toString(36).slice(2, 8)
  let counter = 0
  return () => `${start}-${(++counter).toString(36)}`
}
