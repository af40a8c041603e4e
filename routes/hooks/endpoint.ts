import { endpointsOf, type Access } from '../../kernel/http/endpoint.ts'
import { hooksFault } from './faults.ts'
import type { HooksRoutes } from './options.ts'

/** The endpoints of the hooks service. */
export const { api, page, form } = endpointsOf<HooksRoutes, undefined>({
  bodyLimit: 64 * 1024,
  alwaysRefuses: [],
  faultReply: (fault, context) => hooksFault(fault, context),
})

/** Whoever reaches the pages: they have no sign-in (hooks.md section 5). */
export const operator: Access<HooksRoutes, undefined> = {
  guard: 'guarded',
  needsToken: false,
  identify: () => undefined,
}
