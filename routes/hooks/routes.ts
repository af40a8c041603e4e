import Type from 'typebox'
import { unavailable } from '../../kernel/fault.ts'
import { mountPages } from '../../kernel/http/endpoint.ts'
import { jsonReply } from '../../kernel/http/reply.ts'
import type { Route } from '../../kernel/http/router.ts'
import type { ApiDescription, Operation, ReplyDescription } from '../../kernel/openapi.ts'
import { Health, readHealth } from '../../services/hooks/status.ts'
import { apiDocsRoutes } from '../api-docs.ts'
import { assetRoutes } from '../assets.ts'
import { dashboardEndpoints } from './dashboard.ts'
import { deliveryRoutes, IngestAck } from './deliveries.ts'
import type { HooksRoutes } from './endpoint.ts'
import { eventEndpoints, payloadRoute } from './events.ts'
import { mcpRoute } from './mcp.ts'
import { providerEndpoints } from './providers.ts'
import { settingsEndpoints } from './settings.ts'
import { forwardRoute, streamRoute } from './stream.ts'

/** Pages and forms. */
const ENDPOINTS = [
  ...dashboardEndpoints,
  ...eventEndpoints,
  ...providerEndpoints,
  ...settingsEndpoints,
]

/** Every route of the hooks listener but `/metrics`, which all listeners share. */
export function hooksRoutes(options: HooksRoutes): readonly Route[] {
  const described = [...deliveryRoutes(options), streamRoute(options), healthRoute(options)]
  return [
    ...described,
    ...mountPages(ENDPOINTS, options),
    payloadRoute(options),
    mcpRoute(options),
    forwardRoute(options),
    ...assetRoutes('/assets'),
    ...apiDocsRoutes(describeHooks(options.version, described), options.baseUrl),
  ]
}

/** hooks.md section 2, Problem. */
const Problem = Type.Object({
  type: Type.String(),
  title: Type.String(),
  status: Type.Integer(),
  detail: Type.String(),
  instance: Type.String(),
})

const REFUSALS: Readonly<Record<number, string>> = {
  400: 'The delivery can not be read',
  401: 'The signature is missing, malformed, stale or wrong',
  403: 'The provider is disabled, or its token or signature is missing or wrong',
  404: 'There is no such provider, or it is not configured',
  413: 'The body is too large',
  503: 'The database is out of reach or more comes than can be stored: to be sent again',
}

/**
 * What the document says of the endpoints for programs; pages and tools (MCP) are not among them.
 */
function describeHooks(
  version: string,
  operations: readonly Operation[],
): Omit<ApiDescription, 'servers'> {
  const refusal = ([status, description]: [string, string]): [string, ReplyDescription] => [
    status,
    { description, schema: Problem, type: 'application/problem+json' },
  ]
  return {
    title: 'Gatehouse hooks',
    version,
    description: 'Webhook receivers and the live stream of their events.',
    tags: {
      Receivers: 'Where senders deliver',
      Events: 'What was delivered, live',
      Health: 'For monitoring',
    },
    operations,
    schemas: { IngestAck, Health, Problem },
    refusals: Object.fromEntries(Object.entries(REFUSALS).map(refusal)),
  }
}

/** `GET /healthz` (hooks.md section 4): 200 Health, or a 503 problem without the database. */
function healthRoute({ hooks, version }: HooksRoutes): Operation {
  return {
    ...{ method: 'GET', path: '/healthz', access: 'open', id: 'getHealth', tag: 'Health' },
    summary: 'Tell whether webhooks come in, and what is impaired.',
    needsToken: false,
    replies: { 200: { description: 'They come in', schema: Health } },
    refusals: [503],
    async handle() {
      const health = await readHealth(hooks.db, hooks.queue.broker, hooks.readStatus, version)
      if (health.status === 'error') throw unavailable('The database is out of reach.')
      return jsonReply(health)
    },
  }
}
