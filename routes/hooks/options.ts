import type { Hooks } from '../../services/hooks/open.ts'

/** What the routes of the hooks service are made from. */
export interface HooksRoutes {
  readonly hooks: Hooks
  readonly version: string
  /** Public address of the listener, without a slash at the end; known once it listens. */
  readonly baseUrl: () => string
  readonly maxBody: () => number
  readonly freshnessSeconds: () => number
  /** How long a rotated token or secret is accepted when a form does not say it. */
  readonly overlapSeconds: () => number
  /** Variables and their values for the settings page, never a secret. */
  readonly configuration: () => readonly (readonly [string, string])[]
}
