import { setTimeout as sleep } from 'node:timers/promises'

/**
 * Time as a parameter: the present, and timers that never keep the process alive by themselves.
 */
export interface Clock {
  now(): Date
  /** Milliseconds since some moment, for durations: they go on evenly when the clock is set. */
  elapsed(): number
  /** Calls back each `ms` until the returned function is called. */
  every(ms: number, callback: () => void): () => void
}

export const systemClock: Clock = {
  now: () => new Date(),
  elapsed: () => performance.now(),
  every(ms, callback) {
    const timer = setInterval(callback, ms)
    timer.unref()
    return () => clearInterval(timer)
  },
}

/** Waits, less when the signal is aborted; never rejects. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => undefined)
}

const FIRST_MS = 200
const LONGEST_MS = 10_000

/**
 * How long to wait before the next attempt after some failures in a row, in milliseconds. The time
 * doubles with each failure, up to ten seconds. Half of it is random, so that clients that failed
 * together do not come back together.
 */
export function backoffMs(failures: number, random: (size: number) => Buffer): number {
  const whole = Math.min(LONGEST_MS, FIRST_MS * 2 ** (failures - 1))
  return Math.round((whole / 2) * (1 + random(4).readUInt32LE() / 2 ** 32))
}

const SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 }

/** The accepted form of a duration, in words. */
export const DURATION_FORM = 'a whole number with s, m, h or d, such as 90s, 15m, 24h or 7d'

/**
 * A duration in seconds, read from text such as `15m`; `0` needs no unit. Undefined for other
 * text.
 */
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

/** The accepted form of an instant, in words. */
export const INSTANT_FORM = 'a time with its zone such as 2027-01-31T12:00:00Z'

/**
 * An instant with its zone (RFC 3339), in a year of four digits in UTC too; undefined for anything
 * else.
 */
export function readInstant(value: unknown): Date | undefined {
  if (typeof value !== 'string') return undefined
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)$/i.test(value)) {
    return undefined
  }
  const time = new Date(value)
  const year = time.getUTCFullYear()
  // The database has no year 0, and one of five digits is no time of the API.
  if (Number.isNaN(year) || year < 1 || year > 9999) return undefined
  // JavaScript takes February 30 for March 2.
  const day = new Date(value.slice(0, 10)).getUTCDate()
  return day === Number(value.slice(8, 10)) ? time : undefined
}

/** A time as people type it: an instant, or a duration from now. Undefined for anything else. */
export function readTime(text: string, now: Date): Date | undefined {
  const seconds = parseDuration(text)
  if (seconds === undefined) return readInstant(text)
  const at = new Date(now.getTime() + seconds * 1000)
  // Also undefined for an invalid date: comparing NaN gives false.
  return at.getUTCFullYear() <= 9999 ? at : undefined
}

const HOUR_MS = 3_600_000

/** Start of the window that ends now, such as of the last 24 hours. */
export function hoursBefore(now: Date, hours: number): Date {
  return new Date(now.getTime() - hours * HOUR_MS)
}
