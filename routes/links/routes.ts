import { helpPage } from '../../html/links/help.ts'
import { wrongMethod } from '../../kernel/fault.ts'
import { mountApi, mountPages } from '../../kernel/http/endpoint.ts'
import { bytesReply, seeOther } from '../../kernel/http/reply.ts'
import type { Match, Route, Fallback } from '../../kernel/http/router.ts'
import { clientConfiguration } from '../../kernel/mcp/server.ts'
import { apiDocsRoutes } from '../api-docs.ts'
import { assetRoutes } from '../assets.ts'
import { docsEndpoints } from '../docs.ts'
import { plainHealthRoute } from '../monitoring.ts'
import { admin, anybody, guest, signedIn, token } from './access.ts'
import { aliasEndpoints } from './names/aliases.ts'
import { auditEndpoints } from './audit.ts'
import { bulkEndpoints } from './names/bulk.ts'
import { deletedEndpoints } from './names/deleted.ts'
import { openToExtensions, preflightReply } from './extensions.ts'
import { healthEndpoints } from './visits/health.ts'
import { historyEndpoints } from './names/history/history.ts'
import { completionEndpoints } from './names/links/completions.ts'
import { listEndpoints } from './lists.ts'
import { Config, describeApi } from './description.ts'
import { faultReply, NOT_FOUND } from './faults.ts'
import { api, page, raw, shortLinks, type LinksRoutes } from './kit.ts'
import { searchEndpoints } from './opensearch.ts'
import { linkFormEndpoints } from './names/links/form.ts'
import { linkPageEndpoints } from './link.ts'
import { linkEndpoints } from './names/links/links.ts'
import { qrEndpoints } from './names/links/qr.ts'
import { memberEndpoints, ownerEndpoints } from './names/members.ts'
import { missingEndpoints } from './visits/missing.ts'
import { paletteEndpoints } from './palette.ts'
import { statsEndpoints } from './visits/stats.ts'
import { tagEndpoints } from './names/tags.ts'
import { tokenEndpoints } from './people/tokens.ts'
import { toolEndpoints } from './transfer/tools.ts'
import { transferEndpoints } from './transfer/transfer.ts'
import { userEndpoints } from './people/users.ts'
import { isReservedPath, resolverRoute } from './visits/visits.ts'

const API = '/api/v1/'
const ADMIN = `${API}admin/`
const anyToken = token('full', 'read', 'create')

const homeEndpoint = raw({ path: '/', access: guest, answer: () => seeOther('/-/') })

/** Neither the pages nor the places that links lead to are for search engines. */
const ROBOTS = bytesReply('User-agent: *\nDisallow: /\n', 'text/plain; charset=utf-8')

const robotsEndpoint = raw({ path: '/robots.txt', access: anybody, answer: () => ROBOTS })

const configEndpoint = api({
  method: 'GET',
  path: '/api/v1/config',
  access: anybody,
  id: 'getConfig',
  tag: 'Config',
  summary: 'Get what a client may know of this server; needs no token.',
  returns: { description: 'The configuration', schema: Config },
  answer: ({ app }) => ({ short_keyword: app.shortKeyword() }),
})

const helpEndpoint = page({
  path: '/-/help',
  access: signedIn,
  answer: ({ app }) => ({
    page: () => helpPage(shortLinks(app), clientConfiguration(app.baseUrl(), 'links', 'TOKEN')),
  }),
})

/** All endpoints; the API's document has its own in this order. */
const ENDPOINTS = [
  homeEndpoint,
  robotsEndpoint,
  ...linkEndpoints,
  ...linkPageEndpoints,
  ...linkFormEndpoints,
  ...qrEndpoints,
  ...aliasEndpoints,
  ...historyEndpoints,
  ...deletedEndpoints,
  ...healthEndpoints,
  ...statsEndpoints,
  ...memberEndpoints,
  ...ownerEndpoints,
  ...tagEndpoints,
  configEndpoint,
  ...userEndpoints,
  ...bulkEndpoints,
  ...transferEndpoints,
  ...missingEndpoints,
  ...auditEndpoints,
  ...tokenEndpoints,
  ...toolEndpoints,
  ...listEndpoints,
  ...completionEndpoints,
  helpEndpoint,
  ...paletteEndpoints,
  ...docsEndpoints({ page, raw }, signedIn),
  ...searchEndpoints,
]

/** The routes of the links listener; `databaseAnswers` is the health probe. */
export function linksRoutes(
  app: LinksRoutes,
  databaseAnswers: () => Promise<boolean>,
): readonly Route[] {
  const operations = mountApi(ENDPOINTS, app).map(openToExtensions)
  const document = describeApi(app.version, operations)
  return [
    plainHealthRoute({
      version: app.version,
      databaseAnswers,
      faultReply: (...fault) => faultReply(app, ...fault, null),
      problem: () => undefined,
    }),
    ...assetRoutes('/-/assets', 'links'),
    ...mountPages(ENDPOINTS, app),
    ...operations,
    ...apiDocsRoutes(document, app.baseUrl, '/-/'),
  ]
}

/** Answers paths without a route: the API's refusals below its prefix, the resolver elsewhere. */
export function linksFallback(app: LinksRoutes): Fallback {
  const resolver = resolverRoute(app)
  const visit: Match = { kind: 'route', route: resolver, params: {} }
  return (path, allow, method) => {
    if (path.startsWith(API)) {
      const missing = missingOperation(app, path, allow)
      const handle: Route['handle'] = (context) =>
        preflightReply(context) ?? missing.handle(context)
      return { kind: 'route', route: { ...missing, handle }, params: {} }
    }
    if (allow !== undefined) return { kind: 'wrong-method', allow }
    if (method === 'GET' || method === 'HEAD') return visit
    return isReservedPath(path) ? { kind: 'none' } : { kind: 'wrong-method', allow: 'GET, HEAD' }
  }
}

/**
 * Refuses a path or method that the API does not have: strangers get 401 (links.md section 5),
 * callers with a token get 404, or 405 with the methods. Below `admin/` only admins learn which
 * paths exist.
 */
function missingOperation(app: LinksRoutes, path: string, allow: string | undefined): Route {
  const missing = raw({
    path: '/api/v1/(none)',
    access: path.startsWith(ADMIN) ? admin(anyToken) : anyToken,
    answer() {
      if (allow === undefined) throw NOT_FOUND
      throw wrongMethod(allow, `this path answers ${allow} only`)
    },
  })
  return missing.route(app)
}
