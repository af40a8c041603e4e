import type { Context } from './context.ts'
import type { HttpMetrics } from './http-metrics.ts'
import type { LogLimit } from './log-limit.ts'
import type { Log } from './log.ts'

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
