import { unavailable } from '../kernel/fault.ts'
import { jsonReply, bytesReply, type FaultReply } from '../kernel/http/reply.ts'
import type { Route } from '../kernel/http/router.ts'
import { METRICS_TYPE } from '../kernel/metrics.ts'

/** What the health of a listener is read from. */
interface PlainHealth {
  version: string
  databaseAnswers: () => Promise<boolean>
  faultReply: FaultReply
  /** Why it is degraded, for anybody to read; undefined if it is not. */
  problem: () => string | undefined
}

/** `GET /healthz` of a listener whose contract has no health body of its own. */
export function plainHealthRoute(parts: PlainHealth): Route {
  const { version, databaseAnswers, faultReply } = parts
  return {
    method: 'GET',
    path: '/healthz',
    access: 'open',
    async handle(context) {
      if (!(await databaseAnswers())) {
        return faultReply(unavailable('The database is out of reach.'), context)
      }
      const problem = parts.problem()
      const rest = { database: 'ok', version }
      if (problem === undefined) return jsonReply({ status: 'ok', ...rest })
      return jsonReply({ status: 'degraded', ...rest, reasons: [problem] })
    },
  }
}

export type RenderMetrics = () => string | Promise<string>

/** `GET /metrics` of every listener: the whole program's metrics as OpenMetrics text. */
export function metricsRoute(render: RenderMetrics): Route {
  return {
    method: 'GET',
    path: '/metrics',
    access: 'guarded',
    async handle() {
      return bytesReply(await render(), METRICS_TYPE, { 'cache-control': 'no-store' })
    },
  }
}
