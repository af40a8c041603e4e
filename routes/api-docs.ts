import { explorerPage } from '../html/layout.ts'
import { openApi, type ApiDescription, toYaml } from '../kernel/openapi.ts'
import { bytesReply, htmlReply } from '../kernel/http/reply.ts'
import type { Route } from '../kernel/http/router.ts'
import { assetRoutes } from './assets.ts'

/**
 * The explorer draws its arrows from data: URLs in its style sheet; everything else is of our
 * origin.
 */
const EXPLORER_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
  "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/**
 * `GET /api/openapi.yaml`, open as the API is, and its explorer at `/api/docs/`, guarded as pages
 * are (decisions.md section 5, OpenAPI). `baseUrl` is the service's public address now: `http://…`
 * without a slash at its end, or `unix:…`. `home` is the first page of the service.
 */
export function apiDocsRoutes(
  api: Omit<ApiDescription, 'servers'>,
  baseUrl: () => string,
  home: string,
): readonly Route[] {
  let made: { base: string; yaml: string } | undefined

  function document(): string {
    const base = baseUrl()
    // The address is known once the listener runs, and may change with the configuration.
    if (made?.base !== base)
      made = { base, yaml: toYaml(openApi({ ...api, servers: serversAt(base) })) }
    return made.yaml
  }

  return [
    {
      method: 'GET',
      path: '/api/openapi.yaml',
      access: 'open',
      handle: () => bytesReply(document(), 'application/yaml', { 'cache-control': 'no-cache' }),
    },
    {
      method: 'GET',
      path: '/api/docs',
      access: 'guarded',
      handle: () => ({ status: 308, headers: { location: '/api/docs/' }, body: null }),
    },
    {
      method: 'GET',
      path: '/api/docs/',
      access: 'guarded',
      handle: () =>
        htmlReply(explorerPage(api.title, '/api/docs', home), 200, {
          'content-security-policy': EXPLORER_POLICY,
        }),
    },
    ...assetRoutes('/api/docs', 'explorer'),
  ]
}

/** The public address, and the one that the explorer calls: its own, whatever that is. */
function serversAt(base: string): ApiDescription['servers'] {
  const here = { url: '/', description: 'The server that this description is from' }
  return /^https?:/.test(base) ? [{ url: base, description: 'The public address' }, here] : [here]
}
