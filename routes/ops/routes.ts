import Type from 'typebox'
import { Event } from '../../db/ops/events.ts'
import { Memory } from '../../db/ops/memories.ts'
import { Cooldown } from '../../db/ops/operations.ts'
import { Session } from '../../db/ops/sessions.ts'
import { mountApi, mountPages } from '../../kernel/http/endpoint.ts'
import { jsonReply } from '../../kernel/http/reply.ts'
import { noRoute, type Match, type Route, type Fallback } from '../../kernel/http/router.ts'
import type { ApiDescription, Operation } from '../../kernel/openapi.ts'
import { Config, ConfigUpdate } from '../../services/ops/config.ts'
import { MemoryCreation, MemoryUpdate } from '../../services/ops/memories.ts'
import { apiDocsRoutes } from '../api-docs.ts'
import { assetRoutes } from '../assets.ts'
import { plainHealthRoute } from '../monitoring.ts'
import { alertEndpoints, AlertProblem, AlertReceipt, webhookOperation } from './alerts.ts'
import { auditEndpoints } from './audit.ts'
import { chatRoutes } from './chat.ts'
import { checkEndpoints } from './checks.ts'
import { configEndpoints } from './config.ts'
import { dashboardEndpoints } from './dashboard.ts'
import { type OpsApp, opsFault } from './kit.ts'
import { eventEndpoints } from './events.ts'
import { memoryEndpoints } from './memories.ts'
import { operationEndpoints } from './operations.ts'
import { SessionDetail, sessionEndpoints, sessionStream } from './sessions.ts'
import { waitingEndpoints } from './waiting.ts'

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

const ENDPOINTS = [
  ...dashboardEndpoints,
  ...checkEndpoints,
  ...waitingEndpoints,
  ...sessionEndpoints,
  ...eventEndpoints,
  ...alertEndpoints,
  ...memoryEndpoints,
  ...operationEndpoints,
  ...configEndpoints,
  ...auditEndpoints,
]

/** The routes of the ops listener; `databaseAnswers` is the health probe. */
export function opsRoutes(app: OpsApp, databaseAnswers: () => Promise<boolean>): readonly Route[] {
  const operations = [HEALTH, ...mountApi(ENDPOINTS, app), webhookOperation(app)]
  return [
    plainHealthRoute(app.version, databaseAnswers, (...fault) => opsFault(app, ...fault)),
    ...assetRoutes('/assets', 'ops'),
    ...mountPages(ENDPOINTS, app),
    sessionStream(app),
    ...operations,
    // Not in the document: OpenAI describes them.
    ...chatRoutes(app),
    ...apiDocsRoutes(describeOps(app.version, operations), app.baseUrl),
  ]
}

/** A wrong method under the API is 404, not 405, by its contract. */
export const opsFallback: Fallback = (path, allow, method) =>
  path.startsWith(API) ? NONE : noRoute(path, allow, method)

/** ops.md section 2, error body. */
const ErrorBody = Type.Object({
  error: Type.String({ description: 'What is wrong, for people' }),
})

const REFUSALS: Readonly<Record<number, string>> = {
  400: 'Something in the path, the query or the body is not as it must be',
  401: 'The key is missing or wrong',
  403: 'Called by another name, or by a page of another site',
  404: 'There is no such thing',
  409: 'A session is running',
  413: 'The body is too large',
  415: 'The body is not said to be JSON',
  500: 'It failed; the log says why',
  503: 'The database is out of reach, and nothing was changed; try again shortly',
}

function describeOps(
  version: string,
  operations: readonly Operation[],
): Omit<ApiDescription, 'servers'> {
  const refusals = Object.entries(REFUSALS).map(([status, description]) => {
    return [status, { description, schema: ErrorBody }]
  })
  return {
    title: 'Gatehouse ops',
    version,
    description:
      'An agent that looks into the state of services, one session at a time, and what it found.',
    tags: {
      Health: 'For monitoring',
      Sessions: 'What the agent does and did',
      Events: 'What was found',
      Memories: 'What was learned',
      Cooldowns: 'What was done to services lately',
      Config: 'The configuration that runs',
      Alerts: 'Where monitoring tools deliver',
    },
    operations,
    schemas: {
      Session,
      SessionDetail,
      Event,
      Memory,
      MemoryCreation,
      MemoryUpdate,
      Cooldown,
      Config,
      ConfigUpdate,
      AlertReceipt,
      AlertProblem,
      Error: ErrorBody,
    },
    refusals: Object.fromEntries(refusals),
    tokens: 'The value of OPS_CHAT_API_KEY; the alert webhook alone needs it',
  }
}
