import type { Metrics } from './metrics.ts'

export interface HttpMetrics {
  finished(service: string, route: string, status: number, seconds: number): void
}

/** Counts and times requests by service, route pattern and status. */
export function createHttpMetrics(metrics: Metrics): HttpMetrics {
  const requests = metrics.counter('gatehouse_http_requests', 'Requests answered.')
  const seconds = metrics.histogram('gatehouse_http_request_seconds', 'Time to answer a request.')
  return {
    finished(service, route, status, elapsed) {
      requests.add({ service, route, status: String(status) })
      seconds.observe({ service }, elapsed)
    },
  }
}
