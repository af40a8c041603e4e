import { mountPages } from '../../../kernel/http/endpoint.ts'
import type { Route } from '../../../kernel/http/router.ts'
import type { LinksRoutes } from '../options.ts'
import { allLinksEndpoints } from '../all-links.ts'
import { userEndpoints } from '../users.ts'
import { helpRoute } from './help.ts'
import { searchRoutes } from './opensearch.ts'
import { linkFormEndpoints } from '../link-form.ts'
import { linkEndpoints } from '../links.ts'
import { listEndpoints } from '../lists.ts'
import { memberEndpoints } from '../members.ts'
import { tagEndpoints } from '../tags.ts'
import { tokenEndpoints } from '../tokens.ts'

/** All pages, and the browsers' search. */
export function linksPages(options: LinksRoutes): readonly Route[] {
  return [
    ...mountPages(listEndpoints, options),
    ...mountPages(linkFormEndpoints, options),
    ...mountPages(linkEndpoints, options),
    ...mountPages(memberEndpoints, options),
    ...mountPages(tagEndpoints, options),
    ...mountPages(tokenEndpoints, options),
    ...mountPages([...userEndpoints, ...allLinksEndpoints], options),
    ...searchRoutes(options),
    helpRoute(options),
  ]
}
