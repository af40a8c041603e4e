import { mountPages } from '../../../kernel/http/endpoint.ts'
import type { Route } from '../../../kernel/http/router.ts'
import type { LinksRoutes } from '../options.ts'
import { allLinksEndpoints } from '../all-links.ts'
import { userEndpoints } from '../users.ts'
import { helpRoute } from './help.ts'
import { linkFormRoutes } from './link-form.ts'
import { linkRoutes } from './link.ts'
import { listRoutes } from './links.ts'
import { searchRoutes } from './opensearch.ts'
import { tagPages } from './tags.ts'
import { tokenEndpoints } from '../tokens.ts'

/** All pages, and the browsers' search. */
export function linksPages(options: LinksRoutes): readonly Route[] {
  return [
    ...listRoutes(options),
    ...linkFormRoutes(options),
    ...linkRoutes(options),
    ...tagPages(options),
    ...mountPages(tokenEndpoints, options),
    ...mountPages([...userEndpoints, ...allLinksEndpoints], options),
    ...searchRoutes(options),
    helpRoute(options),
  ]
}
