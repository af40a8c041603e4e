import { createHash } from 'node:crypto'

/** What a table holds: how many rows, and the SHA-256 of the SHA-256s of their texts in the order of the key. */
export interface Digest {
  readonly rows: number
  readonly sha256: string
}

/** A digest that is being made, row by row. */
export interface DigestMaker {
  /** Takes the SHA-256 of the next row's text, in hexadecimal. */
  add(hash: string): void
  result(): Digest
}

/** Begins the digest of a table. */
export function createDigest(): DigestMaker {
  const all = createHash('sha256')
  let rows = 0
  return {
    add(hash) {
      all.update(hash, 'hex')
      rows += 1
    },
    result: () => ({ rows, sha256: all.copy().digest('hex') }),
  }
}

/** Whether two digests are of the same rows. */
export function isSame(one: Digest, other: Digest): boolean {
  return one.rows === other.rows && one.sha256 === other.sha256
}
