import * as Type from '../../kernel/schema.ts'
import type { EndpointKey } from '../../db/hooks/agents/endpoints.ts'
import { hooksFrame } from '../../html/hooks/layout.ts'
import type { ServiceLink } from '../../html/layout.ts'
import { Fault } from '../../kernel/fault.ts'
import { anyone, endpointsOf, visitor } from '../../kernel/http/endpoint.ts'
import type { McpServer } from '../../kernel/mcp/server.ts'
import { field } from '../../kernel/validate.ts'
import type { Hooks } from '../../services/hooks/open.ts'
import { hooksFault } from './faults.ts'

/**
 * The endpoints of the hooks service. Pages and forms have no sign-in: they are for `anyone`, and
 * where a request comes from decides (hooks.md section 5). The API takes tokens, too
 * (`access.ts`). A form answers its fragment, and the whole page to a browser without script.
 */
export const { api, page, form, raw, action } = endpointsOf<HooksRoutes, EndpointKey | undefined>({
  access: anyone,
  pageAccess: visitor,
  bodyLimit: 64 * 1024,
  unknownMember: 422,
  alwaysRefuses: [503],
  faultReply: hooksFault,
  frame: ({ services }, page) => hooksFrame(page, services()),
  formAudience: ({ headers }) => {
    if (headers['hx-request'] === 'true') return 'htmx'
    return headers['sec-fetch-mode'] === 'navigate' ? 'browser' : 'program'
  },
  wrongFields: ({ message, fields, field = '' }) =>
    new Fault(422, 'UNPROCESSABLE', message, { field, fields }),
})

/** What the routes of the hooks service are made from. */
export interface HooksRoutes {
  hooks: Hooks
  /** What an endpoint of the tool protocol offers. */
  toolServerOf: (endpoint: EndpointKey) => McpServer
  version: string
  /** The services that run, for the header of the pages. */
  services: () => readonly ServiceLink[]
  /** Public address of the listener, without a slash at the end; known once it listens. */
  baseUrl: () => string
  maxBody: () => number
  freshnessSeconds: () => number
  /** How long a rotated token or secret is accepted when a form does not say it. */
  overlapSeconds: () => number
  /** Variables and their values for the settings page, never a secret. */
  configuration: () => readonly (readonly [string, string])[]
}

/** Enables or disables a provider or a destination. */
export const Switch = Type.Object(
  { enabled: field(Type.Boolean(), 'must be true or false.') },
  { additionalProperties: false },
)
