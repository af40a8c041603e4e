import { bytesReply, seeOther } from '../../kernel/http/reply.ts'
import type { Match, Route, Unmatched } from '../../kernel/http/router.ts'
import { apiDocsRoutes } from '../api-docs.ts'
import { assetRoutes } from '../assets.ts'
import { plainHealthRoute } from '../health.ts'
import { describeApi } from './api/description.ts'
import { API, missingOperation } from './api/routes.ts'
import { faultReply } from './faults.ts'
import type { LinksRoutes } from './options.ts'
import { linksPages } from './pages/routes.ts'
import { isReservedPath, resolverRoute } from './visits.ts'

/** Nothing here is for an index: neither the pages nor where links lead. */
const ROBOTS = bytesReply('User-agent: *\nDisallow: /\n', 'text/plain; charset=utf-8')

/** The routes of the links listener; `databaseAnswers` is the health probe. */
export function linksRoutes(
  options: LinksRoutes,
  databaseAnswers: () => Promise<boolean>,
): readonly Route[] {
  const api = describeApi(options)
  return [
    { method: 'GET', path: '/', access: 'guarded', handle: () => seeOther('/-/') },
    { method: 'GET', path: '/robots.txt', access: 'open', handle: () => ROBOTS },
    plainHealthRoute(options.version, databaseAnswers, faultReply),
    ...assetRoutes('/-/assets'),
    ...linksPages(options),
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
    if (method === 'GET' || method === 'HEAD') return visit
    return isReservedPath(path) ? { kind: 'none' } : { kind: 'wrong-method', allow: 'GET, HEAD' }
  }
}
