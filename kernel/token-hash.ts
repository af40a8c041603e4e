import { hash } from 'node:crypto'

/** Random bytes, as `node:crypto` makes them. */
export type RandomBytes = (size: number) => Buffer

/** What is stored of a token: a token has so many random bits that a plain hash tells nothing of it. */
export function hashToken(token: string): Buffer {
  return hash('sha256', token, 'buffer')
}
