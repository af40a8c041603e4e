import { createHash } from 'node:crypto'
import { asset } from '../kernel/assets.ts'
import { namesTag } from '../kernel/http/headers.ts'
import type { Access } from '../kernel/net/guard.ts'
import { bytesReply, SAME_ORIGIN_ONLY } from '../kernel/http/reply.ts'
import type { Route } from '../kernel/http/router.ts'

/** Name below the folder, where the file is, and its media type. */
export type AssetFile = readonly [string, string, string]

const CSS = 'text/css; charset=utf-8'
const SCRIPT = 'text/javascript; charset=utf-8'
const ICON: AssetFile = ['icon.svg', 'html/assets/icon.svg', 'image/svg+xml']

const FILES: readonly AssetFile[] = [
  ['app.css', 'html/assets/app.css', CSS],
  ['app.js', 'html/assets/app.js', SCRIPT],
  ICON,
  ['htmx.js', 'htmx/htmx.min.js', SCRIPT],
]

const EXPLORER_FILES: readonly AssetFile[] = [
  ['swagger-ui.css', 'swagger-ui/swagger-ui.css', CSS],
  ['swagger-ui-bundle.js', 'swagger-ui/swagger-ui-bundle.js', SCRIPT],
  ['explorer.css', 'html/assets/explorer.css', CSS],
  ['explorer.js', 'html/assets/explorer.js', SCRIPT],
  ICON,
]

const OPS_FILES: readonly AssetFile[] = [
  ['ops.css', 'html/assets/ops.css', CSS],
  ['ops.js', 'html/assets/ops.js', SCRIPT],
]

/**
 * The pages' own files in a folder of the site. They are open: pages of refusals, unknown links and previews
 * are for anybody, and the files are the same in every installation.
 */
export function assetRoutes(folder: string): readonly Route[] {
  return FILES.map((file) => assetRoute(folder, file, 'open'))
}

/** What the ops dashboard has beside them. */
export function opsAssetRoutes(folder: string): readonly Route[] {
  return OPS_FILES.map((file) => assetRoute(folder, file, 'open'))
}

/** The files of the explorer of an API: large, and only its own page, which is guarded, has them. */
export function explorerAssetRoutes(folder: string): readonly Route[] {
  return EXPLORER_FILES.map((file) => assetRoute(folder, file, 'guarded'))
}

/** A file that is read once, when it is first asked for, and revalidated by ETag, so that an upgrade is seen at once. */
function assetRoute(folder: string, [name, file, type]: AssetFile, access: Access): Route {
  let read: { readonly bytes: Buffer; readonly etag: string } | undefined
  return {
    method: 'GET',
    path: `${folder}/${name}`,
    access,
    handle(context) {
      read ??= withTag(asset(file))
      const headers = { etag: read.etag, 'cache-control': 'no-cache', ...SAME_ORIGIN_ONLY }
      if (namesTag(context.headers['if-none-match'], read.etag))
        return { status: 304, headers, body: null }
      return bytesReply(read.bytes, type, headers)
    },
  }
}

function withTag(bytes: Buffer): { readonly bytes: Buffer; readonly etag: string } {
  const hash = createHash('sha256').update(bytes).digest('base64url')
  return { bytes, etag: `"${hash.slice(0, 22)}"` }
}
