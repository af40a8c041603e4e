import { createHash } from 'node:crypto'
import { asset } from '../kernel/assets.ts'
import { bytesReply } from '../kernel/reply.ts'
import type { Route } from '../kernel/router.ts'

/** Name below the folder, where the file is, and its media type. */
const FILES: readonly (readonly [string, string, string])[] = [
  ['app.css', 'html/assets/app.css', 'text/css; charset=utf-8'],
  ['app.js', 'html/assets/app.js', 'text/javascript; charset=utf-8'],
  ['icon.svg', 'html/assets/icon.svg', 'image/svg+xml'],
  ['htmx.js', 'htmx/htmx.min.js', 'text/javascript; charset=utf-8'],
]

/** The pages' own files in a folder of the site: read once, revalidated by ETag, so that an upgrade is seen at once. */
export function assetRoutes(folder: string): readonly Route[] {
  return FILES.map(([name, file, type]) => {
    const bytes = asset(file)
    const etag = `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"`
    const headers = { etag, 'cache-control': 'no-cache' }
    return {
      method: 'GET',
      path: `${folder}/${name}`,
      access: 'guarded',
      handle: (context) =>
        context.headers['if-none-match'] === etag
          ? { status: 304, headers, body: null }
          : bytesReply(bytes, type, headers),
    }
  })
}
