import { unavailable } from '../kernel/fault.ts'
import { jsonReply, bytesReply, type FaultReply } from '../kernel/http/reply.ts'
import type { Route } from '../kernel/http/router.ts'
import { METRICS_TYPE, type Metrics } from '../kernel/metrics.ts'

/** `GET /healthz` of a listener whose contract has no health body of its own. */
export function plainHealthRoute(
  version: string,
  databaseAnswers: () => Promise<boolean>,
  faultReply: FaultReply,
): Route {
  return {
    method: 'GET',
    path: '/healthz',
    access: 'open',
    async handle(context) {
      if (await databaseAnswers()) return jsonReply({ status: 'ok', database: 'ok', version })
      return faultReply(unavailable('The database is out of reach.'), context)
    },
  }
}

/** `GET /metrics` of every listener: the whole process's metrics as OpenMetrics text. */
export function metricsRoute(metrics: Metrics): Route {
  return {
    method: 'GET',
    path: '/metrics',
    access: 'guarded',
    handle: () => bytesReply(metrics.render(), METRICS_TYPE, { 'cache-control': 'no-store' }),
  }
}
