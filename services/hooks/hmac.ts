import { createHmac, timingSafeEqual } from 'node:crypto'
import type { SecretName } from '../../db/hooks/rows.ts'

/** A key of HMAC-SHA256: a text stands for its UTF-8 bytes. */
export type HmacKey = string | Buffer

/** Keys of one sender: all of `accepted` verify, the current one first; `retired` ones only explain a refusal. */
export interface HmacKeys {
  readonly accepted: readonly HmacKey[]
  readonly retired: readonly HmacKey[]
}

export function hmac(key: HmacKey, prefix: string, body: Buffer): Buffer {
  return createHmac('sha256', key).update(prefix).update(body).digest()
}

/**
 * Which of the accepted keys made one of the signatures; undefined for none. Every key is tried
 * against every signature in constant time, without early exit.
 */
export function matchingSecret(
  keys: readonly HmacKey[],
  prefix: string,
  body: Buffer,
  signatures: readonly Buffer[],
): SecretName | undefined {
  const fits = keys.map((key) => {
    const expected = hmac(key, prefix, body)
    let found = false
    for (const signature of signatures) found = timingSafeEqual(expected, signature) || found
    return found
  })
  const first = fits.indexOf(true)
  if (first < 0) return undefined
  return first === 0 ? 'current' : 'previous'
}

/** Why a signed time (Unix seconds) is outside the window, which is inclusive both ways; else undefined. */
export function staleness(time: string, receivedAt: Date, freshness: number): string | undefined {
  const age = Math.floor(receivedAt.getTime() / 1000) - Number(time)
  if (Math.abs(age) <= freshness) return undefined
  return age > 0 ? `stale by ${age - freshness} s` : `${-age - freshness} s ahead of the window`
}

/** Why a well-formed signature does not match, as far as trying the usual mistakes can tell. */
export function explainMismatch(
  { accepted, retired }: HmacKeys,
  prefix: string,
  body: Buffer,
  signatures: readonly Buffer[],
): string {
  const trimmed = accepted.map((key) => (typeof key === 'string' ? key.replace(/\r?\n$/, '') : key))
  if (
    trimmed.some((key, i) => key !== accepted[i]) &&
    matchingSecret(trimmed, prefix, body, signatures)
  ) {
    return 'would match without the trailing newline of the configured secret'
  }
  const bare = body.at(-1) === 0x0a ? body.subarray(0, body.at(-2) === 0x0d ? -2 : -1) : undefined
  if (bare !== undefined && matchingSecret(accepted, prefix, bare, signatures)) {
    return 'would match without the trailing newline of the body'
  }
  if (matchingSecret(retired, prefix, body, signatures)) return 'matches a retired secret'
  return 'wrong secret or altered body'
}
