import { DURATION_FORM, parseDuration } from '../../kernel/time.ts'

/** The longest interval, in seconds: a year. */
const LONGEST = 366 * 86_400

/** The accepted form of an expected interval, in words. */
export const INTERVAL_FORM = `${DURATION_FORM}, a year at most; 0 turns it off`

/** The accepted form of a burst's threshold, in words. */
export const BURST_FORM = 'a whole number of refusals from 1 to 1000000; 0 turns it off'

/** An expected interval in seconds as people write it; null, which is off, for nothing and for 0. */
export function readInterval(text: string): number | null | 'invalid' {
  if (text === '' || text === '0') return null
  const seconds = parseDuration(text)
  return seconds === undefined || seconds < 1 || seconds > LONGEST ? 'invalid' : seconds
}

/** A burst's threshold as people write it; null, which is off, for nothing and for 0. */
export function readBurst(text: string): number | null | 'invalid' {
  if (text === '' || text === '0') return null
  const count = /^\d{1,7}$/.test(text) ? Number(text) : 0
  return count < 1 || count > 1_000_000 ? 'invalid' : count
}
