import { createHash, timingSafeEqual } from 'node:crypto'

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
