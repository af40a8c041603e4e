import type { Route } from '../../../kernel/router.ts'
import { assetRoutes } from '../../assets.ts'
import type { OpsRoutes } from '../options.ts'
import { streamRoute } from '../stream.ts'

/** The dashboard: its pages, their forms, and the live output of sessions. */
export function pageRoutes(options: OpsRoutes): readonly Route[] {
  return [...assetRoutes('/assets'), streamRoute(options)]
}
