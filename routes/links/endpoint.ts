import Type from 'typebox'
import type { User } from '../../db/links/users.ts'
import { endpointsOf } from '../../kernel/http/endpoint.ts'
import { isUuid } from '../../kernel/text.ts'
import { parsed } from '../../kernel/validate.ts'
import type { ShortLinks } from '../../html/links/links.ts'
import type { Context } from '../../kernel/http/context.ts'
import type { Identity } from '../../kernel/net/identity.ts'
import type { Links } from '../../services/links/open.ts'
import { linksErrorPage } from '../../html/links/visits.ts'
import { Fault, notFound } from '../../kernel/fault.ts'
import { audienceOf } from '../../kernel/http/view.ts'
import { htmlReply, jsonReply, type FaultReply, type Reply } from '../../kernel/http/reply.ts'

/** What the routes of the links listener are made from. */
export interface LinksRoutes {
  links: Links
  version: string
  /** Public address of the service, without a slash at its end. */
  baseUrl: () => string
  /** The short-link prefix, such as `go` (links.md section 2, Config). */
  shortKeyword: () => string
  /** Who sits at the browser. */
  identify: (context: Context) => Identity
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

/** Errors of the links service: `{error, code}`, and a page to a browser. */
export const faultReply: FaultReply = (fault, request) => replyTo(fault, request, null)

/** A fault for a viewer; undefined: nobody is signed in; null: nobody asked who it is. */
export function replyTo(
  fault: Fault,
  request: Pick<Context, 'path' | 'headers'>,
  viewer: User | undefined | null,
): Reply {
  if (!request.path.startsWith('/api/') && audienceOf(request) === 'browser') {
    return faultPage(fault, viewer)
  }
  return jsonReply({ error: fault.message, code: fault.code }, fault.status, fault.headers)
}

/** The page of a fault. */
export function faultPage(fault: Fault, viewer: User | undefined | null): Reply {
  return htmlReply(linksErrorPage(viewer, fault), fault.status, fault.headers)
}

/** A `Location` that proxies and browsers may not take (services/links/target.ts). */
export const LOCATION_TOO_LONG = new Fault(
  414,
  'URI_TOO_LONG',
  'with what the visit adds, the address that the link leads to is too long',
)

export const NOT_FOUND = notFound('nothing is served under this path')
