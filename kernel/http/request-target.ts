import type { IncomingMessage } from 'node:http'

/** The path and the query of a request; the query without its question mark. */
export function splitTarget({ url }: IncomingMessage): {
  readonly path: string
  readonly search: string
} {
  const target = originForm(url ?? '/')
  const mark = target.indexOf('?')
  if (mark < 0) return { path: target, search: '' }
  return { path: target.slice(0, mark), search: target.slice(mark + 1) }
}

/** The host and port in `POST http://host/path`; undefined where the target is a path. */
export function authorityOf({ url = '/' }: IncomingMessage): string | undefined {
  if (url.startsWith('/')) return undefined
  return /^https?:\/\/([^/?#]*)/i.exec(url)?.[1]
}

/** A server must also take `POST http://host/path` (RFC 9112 section 3.2.2). */
function originForm(target: string): string {
  if (target.startsWith('/')) return target
  return target.replace(/^https?:\/\/[^/?#]*(?=[/?]|$)/i, '') || '/'
}
