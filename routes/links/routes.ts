import type { Fault } from '../../kernel/fault.ts'
import type { FaultReply } from '../../kernel/http.ts'
import { jsonReply } from '../../kernel/reply.ts'
import type { Route } from '../../kernel/router.ts'
import { plainHealthRoute } from '../health.ts'

/** Errors of the links service: `{error, code}` (links.md section 7). */
export const linksFault: FaultReply = (fault) =>
  jsonReply({ error: fault.detail, code: fault.code }, fault.status, fault.headers ?? {})

/** What stands in for every path that links.md promises and this version does not have yet. */
export const LINKS_NOT_BUILT: Fault = {
  status: 501,
  code: 'NOT_IMPLEMENTED',
  detail: 'The links service is not built yet in this version; only /healthz and /metrics answer.',
}

/** The routes of the links listener. */
export function linksRoutes(
  version: string,
  databaseAnswers: () => Promise<boolean>,
): readonly Route[] {
  return [plainHealthRoute(version, databaseAnswers, linksFault)]
}
