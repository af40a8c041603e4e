import type { RandomBytes } from '../../../../kernel/tokens.ts'

// When a delivery that failed is tried again.

const MINUTE_S = 60
const HOUR_S = 3_600
/** Seconds from a failed try to the next one; after the last of them a delivery is dead. */
const WAITS_S: readonly number[] = [
  5,
  5 * MINUTE_S,
  30 * MINUTE_S,
  2 * HOUR_S,
  5 * HOUR_S,
  10 * HOUR_S,
  10 * HOUR_S,
]
/** A longer Retry-After is taken for this. */
export const MAX_RETRY_AFTER_S = 24 * HOUR_S

/** When a delivery is tried again: up to a fifth later by chance, and not before Retry-After. */
export function nextTry(random: RandomBytes, tries: number, retryAfterMs = 0) {
  const wait = WAITS_S[tries]
  if (wait === undefined) return { fate: 'dead', wait_ms: 0 } as const
  const part = random(4).readUInt32LE() / 2 ** 32
  const own = Math.round(wait * 1_000 * (1 + part / 5))
  return { fate: 'again', wait_ms: Math.max(own, retryAfterMs) } as const
}
