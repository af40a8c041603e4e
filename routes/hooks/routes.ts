import { unavailable } from '../../kernel/fault.ts'
import { mountApi, mountPages } from '../../kernel/http/endpoint.ts'
import { jsonReply } from '../../kernel/http/reply.ts'
import type { Route } from '../../kernel/http/router.ts'
import type { Operation } from '../../kernel/openapi.ts'
import { Health, readHealth } from '../../services/hooks/status.ts'
import { apiDocsRoutes } from '../api-docs.ts'
import { assetRoutes } from '../assets.ts'
import { auditEndpoints } from './audit.ts'
import { dashboardEndpoints } from './dashboard.ts'
import { destinationEndpoints } from './destinations/destinations.ts'
import { deliveryRoutes } from './deliveries.ts'
import { describeHooks } from './description.ts'
import type { HooksRoutes } from './kit.ts'
import { eventEndpoints, payloadOperation, payloadRoute } from './events/events.ts'
import { exportOperation, exportRoute } from './events/export.ts'
import { mcpRoute } from './endpoints.ts'
import { providerEndpoints } from './providers.ts'
import { replayJobEndpoints } from './replays.ts'
import { settingsEndpoints } from './settings.ts'
import { forwardRoute, streamRoute } from './stream.ts'

/** The endpoints of the API, pages and forms; the API's document has them in this order. */
const ENDPOINTS = [
  ...dashboardEndpoints,
  ...eventEndpoints,
  ...replayJobEndpoints,
  ...providerEndpoints,
  ...destinationEndpoints,
  ...settingsEndpoints,
  ...auditEndpoints,
]

/** Every route of the hooks listener but `/metrics`, which all listeners share. */
export function hooksRoutes(options: HooksRoutes): readonly Route[] {
  const operations = [
    ...deliveryRoutes(options),
    ...mountApi(ENDPOINTS, options),
    payloadOperation(options),
    exportOperation(options),
    streamRoute(options),
    healthRoute(options),
  ]
  return [
    ...operations,
    ...mountPages(ENDPOINTS, options),
    payloadRoute(options),
    exportRoute(options),
    mcpRoute(options),
    forwardRoute(options),
    ...assetRoutes('/assets', 'hooks'),
    ...apiDocsRoutes(describeHooks(options.version, operations), options.baseUrl),
  ]
}

/** `GET /healthz` (hooks.md section 4): 200 Health, or a 503 problem without the database. */
function healthRoute({ hooks, version }: HooksRoutes): Operation {
  return {
    method: 'GET',
    path: '/healthz',
    access: 'open',
    id: 'getHealth',
    tag: 'Health',
    summary: 'Tell whether webhooks come in, and what is impaired.',
    needsToken: false,
    replies: { 200: { description: 'They come in', schema: Health } },
    refusals: [503],
    async handle() {
      const health = await readHealth(hooks, hooks.queue.broker, version)
      if (health.status === 'error') throw unavailable('The database is out of reach.')
      return jsonReply(health)
    },
  }
}
