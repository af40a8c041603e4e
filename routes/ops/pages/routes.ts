import type { Route } from '../../../kernel/http/router.ts'
import { assetRoutes, opsAssetRoutes } from '../../assets.ts'
import type { OpsApp } from '../endpoint.ts'
import { streamRoute } from '../stream.ts'
import { alertRoutes } from './alerts.ts'
import { configRoutes } from './config.ts'
import { dashboardRoutes } from './dashboard.ts'
import { memoryRoutes } from './memories.ts'
import { recordRoutes } from './records.ts'
import { sessionRoutes } from './sessions.ts'

/** The dashboard: its pages, their forms, and the live output of sessions. */
export function pageRoutes(options: OpsApp): readonly Route[] {
  return [
    ...assetRoutes('/assets'),
    ...opsAssetRoutes('/assets'),
    ...dashboardRoutes(options),
    ...sessionRoutes(options),
    streamRoute(options),
    ...recordRoutes(options),
    ...alertRoutes(options),
    ...memoryRoutes(options),
    ...configRoutes(options),
  ]
}
