import * as Type from '../../kernel/schema.ts'
import { mountApi, mountPages, visitor } from '../../kernel/http/endpoint.ts'
import { jsonReply } from '../../kernel/http/reply.ts'
import { noRoute, type Match, type Route, type Fallback } from '../../kernel/http/router.ts'
import type { Operation } from '../../kernel/openapi.ts'
import { apiDocsRoutes } from '../api-docs.ts'
import { assetRoutes } from '../assets.ts'
import { docsEndpoints } from '../docs.ts'
import { plainHealthRoute } from '../monitoring.ts'
import { alertEndpoints } from './alerts/alerts.ts'
import { approvalEndpoints } from './agent/approvals.ts'
import { assistantEndpoints } from './assistants/assistants.ts'
import { auditEndpoints } from './audit.ts'
import { beatEndpoints } from './watch/beats.ts'
import { chatEndpoints } from './agent/chat.ts'
import { checkPageEndpoints } from './check.ts'
import { checkEndpoints } from './watch/checks.ts'
import { checkActEndpoints } from './watch/checks/acts.ts'
import { newCheckEndpoints } from './watch/checks/new.ts'
import { configEndpoints } from './config.ts'
import { dashboardEndpoints } from './dashboard.ts'
import { describeOps } from './description.ts'
import { eventEndpoints } from './events.ts'
import { opsFault } from './faults.ts'
import { page, raw, type OpsApp } from './kit.ts'
import { memoryEndpoints } from './agent/memories.ts'
import { muteEndpoints } from './watch/mutes.ts'
import { noticeEndpoints } from './notices.ts'
import { operationEndpoints } from './agent/operations.ts'
import { paletteEndpoints } from './palette.ts'
import { pauseEndpoints } from './agent/pause.ts'
import { sessionEndpoints } from './agent/sessions.ts'
import { silenceEndpoints } from './alerts/silences.ts'
import { statusEndpoints } from './watch/status.ts'
import { toolEndpoints } from './agent/tools.ts'
import { waitingEndpoints } from './alerts/waiting.ts'

const API = '/api/v1/'
const NONE: Match = { kind: 'none' }

const HealthReply = Type.Object({ status: Type.Literal('ok') })

/** Never refuses anybody, which is why it is not an `api` endpoint. */
const HEALTH: Operation = {
  method: 'GET',
  path: '/api/v1/health',
  id: 'getHealth',
  tag: 'Health',
  summary: 'Say that the service runs; asks nothing of the database.',
  access: 'open',
  needsToken: false,
  replies: { 200: { description: 'It runs', schema: HealthReply } },
  refusals: [],
  handle: () => jsonReply({ status: 'ok' }),
}

/** All endpoints; the API's document has its own in this order. */
const ENDPOINTS = [
  ...dashboardEndpoints,
  ...checkEndpoints,
  ...checkPageEndpoints,
  ...checkActEndpoints,
  ...newCheckEndpoints,
  ...beatEndpoints,
  ...statusEndpoints,
  ...muteEndpoints,
  ...waitingEndpoints,
  ...pauseEndpoints,
  ...sessionEndpoints,
  ...eventEndpoints,
  ...noticeEndpoints,
  ...alertEndpoints,
  ...silenceEndpoints,
  ...memoryEndpoints,
  ...operationEndpoints,
  ...approvalEndpoints,
  ...configEndpoints,
  ...auditEndpoints,
  ...chatEndpoints,
  ...toolEndpoints,
  ...assistantEndpoints,
  ...paletteEndpoints,
  ...docsEndpoints({ page, raw }, visitor),
]

/** The routes of the ops listener; `databaseAnswers` is the health probe. */
export function opsRoutes(app: OpsApp, databaseAnswers: () => Promise<boolean>): readonly Route[] {
  const operations = [HEALTH, ...mountApi(ENDPOINTS, app)]
  return [
    plainHealthRoute({
      version: app.version,
      databaseAnswers,
      faultReply: (...fault) => opsFault(app, ...fault),
      problem: app.ops.checksProblem,
    }),
    ...assetRoutes('/assets', 'ops'),
    ...mountPages(ENDPOINTS, app),
    ...operations,
    ...apiDocsRoutes(describeOps(app.version, operations), app.baseUrl, '/'),
  ]
}

/** A wrong method under the API is 404, not 405, by its contract. */
export const opsFallback: Fallback = (path, allow, method) =>
  path.startsWith(API) ? NONE : noRoute(path, allow, method)
