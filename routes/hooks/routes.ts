import { mountApi, mountPages, visitor } from '../../kernel/http/endpoint.ts'
import type { Route } from '../../kernel/http/router.ts'
import { apiDocsRoutes } from '../api-docs.ts'
import { assetRoutes } from '../assets.ts'
import { docsEndpoints } from '../docs.ts'
import { auditEndpoints } from './audit.ts'
import { dashboardEndpoints } from './dashboard.ts'
import { deliveryRoutes } from './receive/deliveries/deliveries.ts'
import { describeHooks } from './description.ts'
import { deliveryEndpoints } from './send/destinations/deliveries.ts'
import { destinationEndpoints } from './send/destinations/destinations.ts'
import { testSendEndpoints } from './send/destinations/test-send.ts'
import { mcpEndpoints } from './agents/endpoints.ts'
import { eventEndpoints } from './event.ts'
import { logEndpoints } from './log/events/events.ts'
import { exportEndpoints } from './log/events/export.ts'
import { forwarderEndpoints } from './send/forwarders.ts'
import { page, raw, type HooksRoutes } from './kit.ts'
import { paletteEndpoints } from './palette.ts'
import { addProviderEndpoints } from './receive/providers/add.ts'
import { providerEndpoints } from './receive/providers/providers.ts'
import { replayJobEndpoints, replayJobPages } from './send/replays/jobs.ts'
import { replayEndpoints } from './send/replays/replays.ts'
import { schemeEndpoints } from './receive/schemes.ts'
import { searchEndpoints } from './log/searches.ts'
import { settingsEndpoints } from './settings.ts'
import { statsEndpoints } from './log/stats.ts'
import { streamEndpoints } from './log/stream.ts'

/** The API's document has its part of them in this order. */
const ENDPOINTS = [
  ...logEndpoints,
  ...eventEndpoints,
  ...replayEndpoints,
  ...replayJobEndpoints,
  ...replayJobPages,
  ...exportEndpoints,
  ...searchEndpoints,
  ...streamEndpoints,
  ...providerEndpoints,
  ...addProviderEndpoints,
  ...schemeEndpoints,
  ...statsEndpoints,
  ...destinationEndpoints,
  ...deliveryEndpoints,
  ...testSendEndpoints,
  ...dashboardEndpoints,
  ...settingsEndpoints,
  ...mcpEndpoints,
  ...forwarderEndpoints,
  ...auditEndpoints,
  ...paletteEndpoints,
  ...docsEndpoints({ page, raw }, visitor),
]

/** Every route of the hooks listener but `/metrics`, which all listeners share. */
export function hooksRoutes(app: HooksRoutes): readonly Route[] {
  const operations = [...deliveryRoutes(app), ...mountApi(ENDPOINTS, app)]
  return [
    ...operations,
    ...mountPages(ENDPOINTS, app),
    ...assetRoutes('/assets', 'hooks'),
    ...apiDocsRoutes(describeHooks(app.version, operations), app.baseUrl, '/'),
  ]
}
