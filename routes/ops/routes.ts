import type { Fault } from '../../kernel/fault.ts'
import type { FaultReply } from '../../kernel/http.ts'
import { jsonReply } from '../../kernel/reply.ts'
import type { Route } from '../../kernel/router.ts'
import { plainHealthRoute } from '../health.ts'

/** Errors of the ops service: `{error}` (ops.md section 7). */
export const opsFault: FaultReply = (fault) =>
  jsonReply({ error: fault.detail }, fault.status, fault.headers ?? {})

/** What stands in for every path that ops.md promises and this version does not have yet. */
export const OPS_NOT_BUILT: Fault = {
  status: 501,
  code: 'NOT_IMPLEMENTED',
  detail:
    'The ops service is not built yet in this version; only /api/v1/health, /healthz and /metrics answer.',
}

/** The routes of the ops listener. */
export function opsRoutes(
  version: string,
  databaseAnswers: () => Promise<boolean>,
): readonly Route[] {
  return [
    {
      method: 'GET',
      path: '/api/v1/health',
      access: 'open',
      handle: () => jsonReply({ status: 'ok' }),
    },
    plainHealthRoute(version, databaseAnswers, opsFault),
  ]
}
