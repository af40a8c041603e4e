import Type from 'typebox'
import type { User } from '../../db/links/users.ts'
import { endpointsOf } from '../../kernel/http/endpoint.ts'
import { isUuid } from '../../kernel/text.ts'
import { parsed } from '../../kernel/validate.ts'
import type { ServiceLink } from '../../html/layout.ts'
import { linksFrame, type Viewer } from '../../html/links/layout.ts'
import type { ShortLinks } from '../../html/links/links/links.ts'
import type { Html } from '../../kernel/html.ts'
import type { Context } from '../../kernel/http/context.ts'
import type { Links } from '../../services/links/open.ts'
import { linksErrorPage } from '../../html/links/visits/visits.ts'
import { Fault, notFound } from '../../kernel/fault.ts'
import { audienceOf, type Page } from '../../kernel/http/view.ts'
import { htmlReply, jsonReply, type Reply } from '../../kernel/http/reply.ts'

/** What the routes of the links listener are made from. */
export interface LinksRoutes {
  links: Links
  version: string
  /** The services that run, for the header of the pages. */
  services: () => readonly ServiceLink[]
  /** Public address of the service, without a slash at its end. */
  baseUrl: () => string
  /** The short-link prefix, such as `go` (links.md section 2, Config). */
  shortKeyword: () => string
}

/** The endpoints of the links service; 503 while the database is out of reach. */
export const { api, page, form, raw, action } = endpointsOf<LinksRoutes, User | undefined>({
  bodyLimit: 64 * 1024,
  alwaysRefuses: [503],
  faultReply: replyTo,
  frame: framed,
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
export function faultReply(
  app: LinksRoutes,
  fault: Fault,
  request: Pick<Context, 'path' | 'headers'>,
): Reply {
  return replyTo(app, fault, request, null)
}

/** A fault for a viewer; undefined: nobody is signed in; null: nobody asked who it is. */
export function replyTo(
  app: LinksRoutes,
  fault: Fault,
  request: Pick<Context, 'path' | 'headers'>,
  viewer: Viewer,
): Reply {
  if (!request.path.startsWith('/api/') && audienceOf(request) === 'browser') {
    return faultPage(app, fault, viewer)
  }
  return jsonReply({ error: fault.message, code: fault.code }, fault.status, fault.headers)
}

/** The page of a fault. */
export function faultPage(app: LinksRoutes, fault: Fault, viewer: Viewer): Reply {
  return htmlReply(framed(app, linksErrorPage(viewer, fault), viewer), fault.status, fault.headers)
}

/** A page with what stands around each page of the service. */
export function framed({ services }: LinksRoutes, page: Page, viewer: Viewer): Html {
  return linksFrame(page, viewer, services())
}

/** A `Location` that proxies and browsers may not take (services/links/links/target.ts). */
export const LOCATION_TOO_LONG = new Fault(
  414,
  'URI_TOO_LONG',
  'with what the visit adds, the address that the link leads to is too long',
)

export const NOT_FOUND = notFound('nothing is served under this path')
