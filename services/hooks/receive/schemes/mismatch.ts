import type { Key } from './scheme.ts'
import type { Keys } from './signatures.ts'

/** An explanation hashes the body up to five times at once, for unknown callers. */
const MAX_EXPLAINED_BYTES = 64 * 1024
const UNEXPLAINED = 'wrong secret or altered body'

/** Why a well-formed signature does not match: tries the usual mistakes on a small body. */
export function explainMismatch(
  { accepted, retired }: Keys,
  body: Buffer,
  fits: (key: Key, body: Buffer) => boolean,
): string {
  if (body.length > MAX_EXPLAINED_BYTES) return UNEXPLAINED
  const trimmed = accepted.map((key) =>
    typeof key === 'string' ? key.replace(/\r?\n$/, '') : key,
  )
  if (trimmed.some((key, i) => key !== accepted[i] && fits(key, body))) {
    return 'would match without the trailing newline of the configured secret'
  }
  const bare = body.at(-1) === 0x0a ? body.subarray(0, body.at(-2) === 0x0d ? -2 : -1) : undefined
  if (bare !== undefined && accepted.some((key) => fits(key, bare))) {
    return 'would match without the trailing newline of the body'
  }
  return retired.some((key) => fits(key, body)) ? 'matches a retired secret' : UNEXPLAINED
}
