import * as Type from '../../kernel/schema.ts'
import type { Bearer } from '../../db/links/people/tokens.ts'
import type { Caller } from '../../services/links/people/users/groups.ts'
import type { ServiceLink } from '../../html/layout.ts'
import { linksFrame, type Viewer } from '../../html/links/layout.ts'
import type { ShortLinks } from '../../html/links/names/links/links.ts'
import type { Html } from '../../kernel/html.ts'
import { endpointsOf } from '../../kernel/http/endpoint.ts'
import type { Page } from '../../kernel/http/view.ts'
import { isUuid } from '../../kernel/text.ts'
import type { McpServer } from '../../kernel/mcp/server.ts'
import { parsed } from '../../kernel/validate.ts'
import type { Links } from '../../services/links/open.ts'
import { faultReply } from './faults.ts'

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
  /** What `/mcp/links` offers to the holder of a token. */
  toolServerOf: (bearer: Bearer & Caller) => McpServer
}

/** The endpoints of the links service; 503 while the database is out of reach. */
export const { api, page, form, raw, action } = endpointsOf<LinksRoutes, Viewer>({
  bodyLimit: 64 * 1024,
  alwaysRefuses: [503],
  faultReply,
  frame: framed,
})

/** An id in a path, in lower case as ids are shown. */
export const Id = parsed(Type.String({ format: 'uuid' }), 'in the path must be a UUID', (given) =>
  typeof given === 'string' && isUuid(given) ? given.toLowerCase() : undefined,
)

/** How pages write short links. */
export function shortLinks({ baseUrl, shortKeyword }: LinksRoutes): ShortLinks {
  const [keyword, base] = [shortKeyword(), baseUrl()]
  return { keyword, shown: shownPrefix(keyword, base), base }
}

/** A keyword that is the name of the host leads to its default port only. */
function shownPrefix(keyword: string, base: string): string {
  const { hostname, host, port } = URL.parse(base) ?? { hostname: '', host: '', port: '' }
  const isOfHost = hostname === keyword || hostname.startsWith(`${keyword}.`)
  return isOfHost && port !== '' ? host : keyword
}

/** A page with what stands around each page of the service. */
export function framed({ services }: LinksRoutes, page: Page, viewer: Viewer): Html {
  return linksFrame(page, viewer, services())
}
