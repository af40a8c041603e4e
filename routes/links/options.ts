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

/** How pages write short links. */
export function shortLinks({ baseUrl, shortKeyword }: LinksRoutes): ShortLinks {
  return { keyword: shortKeyword(), base: baseUrl() }
}
