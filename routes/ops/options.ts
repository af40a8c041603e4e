import type { Ops } from '../../services/ops/open.ts'

/** What the routes of the ops listener are made from. */
export interface OpsRoutes {
  readonly ops: Ops
  readonly version: string
  /** Public address of the service, without a slash at its end. */
  readonly baseUrl: () => string
  /** The key of the alert webhook, as configured now. */
  readonly chatKey: () => string | undefined
}
