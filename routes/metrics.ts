import { METRICS_TYPE, type Metrics } from '../kernel/metrics.ts'
import { bytesReply } from '../kernel/http/reply.ts'
import type { Route } from '../kernel/http/router.ts'

/** `GET /metrics` of every listener: the whole process's metrics as OpenMetrics text. */
export function metricsRoute(metrics: Metrics): Route {
  return {
    method: 'GET',
    path: '/metrics',
    access: 'guarded',
    handle: () => bytesReply(metrics.render(), METRICS_TYPE, { 'cache-control': 'no-store' }),
  }
}
