/** Reads `Retry-After` as milliseconds, `maxSeconds` at most: seconds, or an HTTP date. Undefined for another text. */
export function readRetryAfter(
  text: string | undefined,
  now: Date,
  maxSeconds: number,
): number | undefined {
  if (text === undefined) return undefined
  const seconds = /^\d{1,9}$/.test(text)
    ? Number(text)
    : (new Date(text).getTime() - now.getTime()) / 1_000
  if (Number.isNaN(seconds)) return undefined
  return Math.ceil(Math.min(Math.max(seconds, 0), maxSeconds) * 1_000)
}
