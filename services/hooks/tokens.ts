import { timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { hashToken } from '../../kernel/tokens.ts'

/** A fresh token: 32 bytes as base64url. `random` is the source of bytes. */
export function makeToken(random: (size: number) => Buffer): string {
  return random(32).toString('base64url')
}

/** Where a generic sender may put its token; the first place that holds one decides. */
export interface TokenPlaces {
  readonly headers: IncomingHttpHeaders
  /** The query's text. */
  readonly search: string
  /** The token in the path, when the path has one. */
  readonly path: string | undefined
}

/** The presented token: `Authorization: Bearer`, `X-Webhook-Token`, `?token=`, path, in this order. */
export function presentedToken({ headers, search, path }: TokenPlaces): string | undefined {
  const { authorization } = headers
  if (authorization !== undefined && /^bearer(?: |$)/i.test(authorization))
    return authorization.slice(7).trim()
  const header = headers['x-webhook-token']
  if (typeof header === 'string') return header
  const query = search.includes('token=') ? new URLSearchParams(search).get('token') : null
  return query ?? path
}

/** Whether a token has the stored hash, in constant time; an empty one never matches. */
export function tokenMatches(token: string, hash: Buffer | null): boolean {
  const same = timingSafeEqual(hashToken(token), hash ?? Buffer.alloc(32))
  return same && hash !== null && token !== ''
}
