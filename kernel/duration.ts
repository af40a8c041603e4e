const SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 }

/** The accepted form of a duration, in words. */
export const DURATION_FORM = 'a whole number with s, m, h or d, such as 90s, 15m, 24h or 7d'

/** A duration in seconds, read from text such as `15m`; `0` needs no unit. Undefined for other text. */
export function parseDuration(text: string): number | undefined {
  if (text === '0') return 0
  const match = /^(\d{1,9})([smhd])$/.exec(text)
  return match === null ? undefined : Number(match[1]) * (SECONDS[match[2] ?? ''] ?? 0)
}

/** A duration in seconds as text that `parseDuration` reads, in the largest unit that is exact. */
export function formatDuration(seconds: number): string {
  if (seconds === 0) return '0'
  // A day is spoken of as 24h: "1d" would look like a date to many.
  const unit = ['d', 'h', 'm'].find((name) => {
    const size = SECONDS[name] ?? 1
    return seconds % size === 0 && (name !== 'd' || seconds > size)
  })
  return unit === undefined ? `${seconds}s` : `${seconds / (SECONDS[unit] ?? 1)}${unit}`
}
