import { noRoute, type Match, type Route, type Unmatched } from '../../kernel/http/router.ts'
import { apiDocsRoutes } from '../api-docs.ts'
import { plainHealthRoute } from '../health.ts'
import { API, apiOperations } from './api/routes.ts'
import { chatRoutes } from './chat.ts'
import { describeOps } from './description.ts'
import { opsFault } from './faults.ts'
import type { OpsApp } from './endpoint.ts'
import { pageRoutes } from './pages/routes.ts'
import { webhookOperation } from './webhook.ts'

const NONE: Match = { kind: 'none' }

/** The routes of the ops listener; `databaseAnswers` is the health probe. */
export function opsRoutes(
  options: OpsApp,
  databaseAnswers: () => Promise<boolean>,
): readonly Route[] {
  const operations = [...apiOperations(options), webhookOperation(options)]
  return [
    plainHealthRoute(options.version, databaseAnswers, opsFault),
    ...pageRoutes(options),
    ...operations,
    // Their document is OpenAI's.
    ...chatRoutes(options),
    ...apiDocsRoutes(describeOps(options.version, operations), options.baseUrl),
  ]
}

/** Under the API a wrong method matches no route, as its contract has it: 404, not 405. */
export const unmatchedOps: Unmatched = (path, allow, method) =>
  path.startsWith(API) ? NONE : noRoute(path, allow, method)
