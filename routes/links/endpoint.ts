import Type from 'typebox'
import type { User } from '../../db/links/users.ts'
import { endpointsOf } from '../../kernel/http/endpoint.ts'
import { isUuid } from '../../kernel/text.ts'
import { parsed } from '../../kernel/validate.ts'
import { replyTo } from './faults.ts'
import type { ShortLinks } from '../../html/links/links.ts'
import type { Context } from '../../kernel/http/context.ts'
import type { Identity } from '../../kernel/net/identity.ts'
import type { Links } from '../../services/links/open.ts'

/** What the routes of the links listener are made from. */
export interface LinksRoutes {
  readonly links: Links
  readonly version: string
  /** Public address of the service, without a slash at its end. */
  readonly baseUrl: () => string
  /** The short-link prefix, such as `go` (links.md section 2, Config). */
  readonly shortKeyword: () => string
  /** Who sits at the browser. */
  readonly identify: (context: Context) => Identity
}

/** The endpoints of the links service; 503 while the database is out of reach. */
export const { api, page, form } = endpointsOf<LinksRoutes, User | undefined>({
  bodyLimit: 64 * 1024,
  alwaysRefuses: [503],
  faultReply: replyTo,
})

/** An id in a path, in lower case as ids are shown. */
export const Id = parsed(Type.String({ format: 'uuid' }), 'in the path must be a UUID', (given) =>
  typeof given === 'string' && isUuid(given) ? given.toLowerCase() : undefined,
)

/** How pages write short links. */
export function shortLinks({ baseUrl, shortKeyword }: LinksRoutes): ShortLinks {
  return { keyword: shortKeyword(), base: baseUrl() }
}
