import { createHash, timingSafeEqual } from 'node:crypto'

/** The type that a `Content-Type` names, in lower case and without parameters; '' when there is none. */
export function mediaType(contentType: string | undefined): string {
  return (contentType ?? '').split(';')[0]?.trim().toLowerCase() ?? ''
}

/**
 * Whether an `If-None-Match` names this entity tag (RFC 9110 section 13.1.2): `*`, or a list with it. Proxies that
 * compress an answer make its tag weak, so weak and strong ones are compared alike.
 */
export function namesTag(header: string | undefined, tag: string): boolean {
  if (header === undefined) return false
  if (header.trim() === '*') return true
  return header.match(/"[^"]*"/g)?.some((named) => named === tag) === true
}

/**
 * Whether a request with this `If-Match` may change what has this strong entity tag (RFC 9110 section
 * 13.1.1). Without the header it may. A weak tag matches nothing.
 */
export function ifMatches(header: string | undefined, etag: string): boolean {
  if (header === undefined || header.trim() === '*') return true
  return header.split(',').some((tag) => tag.trim() === etag)
}

/** The header of a request in which a token comes. */
interface Bearing {
  readonly authorization?: string | undefined
}

/** The token in `Authorization: Bearer TOKEN`, or undefined when the header has none. */
export function bearerToken({ authorization }: Bearing): string | undefined {
  return /^bearer +([^\s]+)$/i.exec(authorization ?? '')?.[1]
}

/** Whether the bearer token is this key, told in a time that says nothing of either. */
export function bearsKey({ authorization }: Bearing, key: string): boolean {
  const token = /^bearer +(.+)$/i.exec(authorization ?? '')?.[1] ?? ''
  // Node reads a header byte by byte; a key may have other characters, which came as UTF-8.
  const same = timingSafeEqual(digest(Buffer.from(token, 'latin1')), digest(Buffer.from(key)))
  return same && key !== ''
}

function digest(bytes: Buffer): Buffer {
  return createHash('sha256').update(bytes).digest()
}
