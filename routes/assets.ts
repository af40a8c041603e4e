import { asset } from '../kernel/assets.ts'
import type { Access } from '../kernel/net/guard.ts'
import { SAME_ORIGIN_ONLY, taggedReply, withTag, type TaggedBytes } from '../kernel/http/reply.ts'
import type { Route } from '../kernel/http/router.ts'

/** Name below the folder, where the file is, and its media type. */
type AssetFile = readonly [string, string, string]

const CSS = 'text/css; charset=utf-8'
const SCRIPT = 'text/javascript; charset=utf-8'
const ICON: AssetFile = ['icon.svg', 'html/assets/icon.svg', 'image/svg+xml']

/** The files of every service's pages. */
const SHARED: readonly AssetFile[] = [
  ['app.css', 'html/assets/app.css', CSS],
  ['app.js', 'html/assets/app.js', SCRIPT],
  ['times.js', 'html/assets/times.js', SCRIPT],
  ['streams.js', 'html/assets/streams.js', SCRIPT],
  ['drafts.js', 'html/assets/drafts.js', SCRIPT],
  ['places.js', 'html/assets/places.js', SCRIPT],
  ['keys.js', 'html/assets/keys.js', SCRIPT],
  ['filter.js', 'html/assets/filter.js', SCRIPT],
  ['palette.js', 'html/assets/palette.js', SCRIPT],
  ICON,
  ['htmx.js', 'htmx/htmx.min.js', SCRIPT],
]

const FILES: Readonly<Record<'hooks' | 'links' | 'ops' | 'explorer', readonly AssetFile[]>> = {
  hooks: [
    ...SHARED,
    ['hooks.css', 'html/assets/hooks.css', CSS],
    ['hooks.js', 'html/assets/hooks.js', SCRIPT],
  ],
  links: [
    ...SHARED,
    ['links.css', 'html/assets/links.css', CSS],
    ['links.js', 'html/assets/links.js', SCRIPT],
  ],
  ops: [
    ...SHARED,
    ['ops.css', 'html/assets/ops.css', CSS],
    ['ops.js', 'html/assets/ops.js', SCRIPT],
  ],
  explorer: [
    ['swagger-ui.css', 'swagger-ui/swagger-ui.css', CSS],
    ['swagger-ui-bundle.js', 'swagger-ui/swagger-ui-bundle.js', SCRIPT],
    ['explorer.css', 'html/assets/explorer.css', CSS],
    ['explorer.js', 'html/assets/explorer.js', SCRIPT],
    ICON,
  ],
}

/**
 * The files of a service's pages, or those of the API explorer. Pages of refusals and unknown links
 * are for anybody, and so are their files, which are the same in every installation. The explorer's
 * are large, and its page is guarded.
 */
export function assetRoutes(folder: string, pages: keyof typeof FILES): readonly Route[] {
  const access = pages === 'explorer' ? 'guarded' : 'open'
  return FILES[pages].map((file) => assetRoute(folder, file, access))
}

/** A file that is read at the first request. The ETag shows an upgrade at once. */
function assetRoute(folder: string, [name, file, type]: AssetFile, access: Access): Route {
  let read: TaggedBytes | undefined
  return {
    method: 'GET',
    path: `${folder}/${name}`,
    access,
    handle(context) {
      read ??= withTag(asset(file))
      const headers = { 'cache-control': 'no-cache', ...SAME_ORIGIN_ONLY }
      return taggedReply(context, read, type, headers)
    },
  }
}
