import { seeOther } from '../../kernel/reply.ts'
import type { Match, Route, Unmatched } from '../../kernel/router.ts'
import { RESERVED_SLUGS } from '../../services/links/slug.ts'
import { apiDocsRoutes } from '../api-docs.ts'
import { assetRoutes } from '../assets.ts'
import { plainHealthRoute } from '../health.ts'
import { describeApi } from './api/description.ts'
import { API, missingOperation } from './api/routes.ts'
import { linksFault } from './faults.ts'
import type { LinksRoutes } from './options.ts'
import { linkPages } from './pages/link-pages.ts'
import { otherPages } from './pages/other-pages.ts'
import { resolverRoute } from './resolver.ts'

/** The routes of the links listener; `databaseAnswers` is the health probe. */
export function linksRoutes(
  options: LinksRoutes,
  databaseAnswers: () => Promise<boolean>,
): readonly Route[] {
  const api = describeApi(options)
  return [
    { method: 'GET', path: '/', access: 'guarded', handle: () => seeOther('/-/') },
    plainHealthRoute(options.version, databaseAnswers, linksFault),
    ...assetRoutes('/-/assets'),
    ...linkPages(options),
    ...otherPages(options),
    ...api.operations,
    ...apiDocsRoutes(api, options.baseUrl),
  ]
}

/** What answers where no route does: the API's own refusals under its prefix, else the resolver. */
export function unmatchedLinks(options: LinksRoutes): Unmatched {
  const resolver = resolverRoute(options)
  const visit: Match = { kind: 'route', route: resolver, params: {} }
  return (path, allow, method) => {
    if (path.startsWith(API)) {
      return { kind: 'route', route: missingOperation(options, allow), params: {} }
    }
    if (allow !== undefined) return { kind: 'wrong-method', allow }
    if (isReservedPath(path)) return { kind: 'none' }
    const reads = method === 'GET' || method === 'HEAD'
    return reads ? visit : { kind: 'wrong-method', allow: 'GET, HEAD' }
  }
}

/** What no link can have: the pages' prefix and the reserved slugs. */
function isReservedPath(path: string): boolean {
  const [, first = ''] = path.split('/', 2)
  return first === '' || first === '-' || RESERVED_SLUGS.has(first)
}
