import type { Route } from '../../../kernel/router.ts'
import type { LinksRoutes } from '../options.ts'
import { adminPages } from './admin.ts'
import { helpRoute } from './help.ts'
import { searchRoutes } from './opensearch.ts'
import { tagPages } from './tags.ts'
import { tokenPages } from './tokens.ts'

/** The pages beside those of links, and the browsers' search. */
export function otherPages(options: LinksRoutes): readonly Route[] {
  return [
    ...tagPages(options),
    ...tokenPages(options),
    ...adminPages(options),
    ...searchRoutes(options),
    helpRoute(options),
  ]
}
