import { hash, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'

/** Random bytes, as `node:crypto` makes them. */
export type RandomBytes = (size: number) => Buffer

/** The header of a request in which a token comes. */
type TokenHeaders = Pick<IncomingHttpHeaders, 'authorization'>

/** The stored form of a token. A token has enough random bits that a plain hash reveals nothing. */
export function hashToken(token: string): Buffer {
  return hash('sha256', token, 'buffer')
}

/** The token in `Authorization: Bearer TOKEN`, if the header has one. */
export function bearerToken({ authorization }: TokenHeaders): string | undefined {
  return /^bearer +([^\s]+)$/i.exec(authorization ?? '')?.[1]
}

/** Whether the bearer token is this key. The comparison takes constant time. */
export function bearsKey({ authorization }: TokenHeaders, key: string): boolean {
  const token = /^bearer +([^ ].*)$/i.exec(authorization ?? '')?.[1] ?? ''
  // Node reads a header as Latin-1; other characters of a key came as UTF-8.
  const given = hash('sha256', Buffer.from(token, 'latin1'), 'buffer')
  const same = timingSafeEqual(given, hashToken(key))
  return same && key !== ''
}
