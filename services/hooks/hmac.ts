import { createHmac, timingSafeEqual } from 'node:crypto'

/** A key of HMAC-SHA256: a text stands for its UTF-8 bytes. */
export type HmacKey = string | Buffer

/** Keys of one provider: all `accepted` ones verify, the current first; `retired` ones only explain a mismatch. */
export interface HmacKeys {
  readonly accepted: readonly HmacKey[]
  readonly retired: readonly HmacKey[]
}

export function hmac(key: HmacKey, prefix: string, body: Buffer): Buffer {
  return createHmac('sha256', key).update(prefix).update(body).digest()
}

/** The HMACs of a body that is still arriving, one for each key. */
export interface Hmacs {
  readonly update: (part: Buffer) => void
  /**
   * Tells which of the keys made one of the signatures; undefined for none. Tries every key against
   * every signature in constant time, without early exit. Called once, after the last part.
   */
  readonly match: (signatures: readonly Buffer[]) => 'current' | 'previous' | undefined
}

export function startHmacs(keys: readonly HmacKey[], prefix: string): Hmacs {
  const hmacs = keys.map((key) => createHmac('sha256', key).update(prefix))
  return {
    update(part) {
      for (const made of hmacs) made.update(part)
    },
    match(signatures) {
      const fits = hmacs.map((made) => {
        const expected = made.digest()
        let found = false
        for (const signature of signatures) found = timingSafeEqual(expected, signature) || found
        return found
      })
      const first = fits.indexOf(true)
      if (first < 0) return undefined
      return first === 0 ? 'current' : 'previous'
    },
  }
}

function matches(
  keys: readonly HmacKey[],
  prefix: string,
  body: Buffer,
  signatures: readonly Buffer[],
): boolean {
  const hmacs = startHmacs(keys, prefix)
  hmacs.update(body)
  return hmacs.match(signatures) !== undefined
}

/** Why a signed time (Unix seconds) is outside the window, inclusive both ways; undefined inside it. */
export function staleness(time: string, receivedAt: Date, freshness: number): string | undefined {
  const age = Math.floor(receivedAt.getTime() / 1000) - Number(time)
  if (Math.abs(age) <= freshness) return undefined
  return age > 0 ? `stale by ${age - freshness} s` : `${-age - freshness} s ahead of the window`
}

/** An explanation hashes the body up to five times at once, for unknown callers. */
const MAX_EXPLAINED_BYTES = 64 * 1024
const UNEXPLAINED = 'wrong secret or altered body'

/** Why a well-formed signature does not match: tries the usual mistakes on a small body. */
export function explainMismatch(
  { accepted, retired }: HmacKeys,
  prefix: string,
  body: Buffer,
  signatures: readonly Buffer[],
): string {
  if (body.length > MAX_EXPLAINED_BYTES) return UNEXPLAINED
  const trimmed = accepted.map((key) => (typeof key === 'string' ? key.replace(/\r?\n$/, '') : key))
  if (trimmed.some((key, i) => key !== accepted[i]) && matches(trimmed, prefix, body, signatures)) {
    return 'would match without the trailing newline of the configured secret'
  }
  const bare = body.at(-1) === 0x0a ? body.subarray(0, body.at(-2) === 0x0d ? -2 : -1) : undefined
  if (bare !== undefined && matches(accepted, prefix, bare, signatures)) {
    return 'would match without the trailing newline of the body'
  }
  if (matches(retired, prefix, body, signatures)) return 'matches a retired secret'
  return UNEXPLAINED
}
