import { mountPages } from '../../kernel/http/endpoint.ts'
import type { Route } from '../../kernel/http/router.ts'
import { apiDocsRoutes } from '../api-docs.ts'
import { assetRoutes } from '../assets.ts'
import { dashboardEndpoints } from './dashboard.ts'
import { describeHooks } from './description.ts'
import { settingsEndpoints } from './settings.ts'
import { eventEndpoints, payloadRoute } from './events.ts'
import { mcpRoute } from './mcp.ts'
import type { HooksRoutes } from './options.ts'
import { providerEndpoints } from './providers.ts'
import { deliveryRoutes } from './deliveries.ts'
import { healthRoute } from './status.ts'
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
