import { Fault } from '../../kernel/fault.ts'
import { endpointsOf, type Access } from '../../kernel/http/endpoint.ts'
import { hooksFault } from './faults.ts'
import type { HooksRoutes } from './options.ts'

/** Pages and forms have no sign-in: where a request comes from decides (hooks.md section 5). */
export const operator: Access<HooksRoutes, undefined> = {
  guard: 'guarded',
  needsToken: false,
  identify: () => undefined,
}

/**
 * The endpoints of the hooks service. A form answers its fragment, and the whole page to a browser
 * without script; htmx gets a fault as programs do, and keeps what was typed.
 */
export const { api, page, form } = endpointsOf<HooksRoutes, undefined>({
  bodyLimit: 64 * 1024,
  alwaysRefuses: [503],
  faultReply: hooksFault,
  formAudience: ({ headers }) =>
    headers['sec-fetch-mode'] === 'navigate' && headers['hx-request'] !== 'true'
      ? 'browser'
      : 'program',
  wrongFields: ({ message, fields, field = '' }) =>
    new Fault(422, 'UNPROCESSABLE', message, { field, fields }),
})
