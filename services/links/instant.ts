/** The accepted form of an instant, in words. */
export const INSTANT_FORM = 'a time with its zone such as 2027-01-31T12:00:00Z'

/** An instant with its zone (RFC 3339); undefined for anything else. */
export function readInstant(value: unknown): Date | undefined {
  if (typeof value !== 'string') return undefined
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)$/i.test(value)) {
    return undefined
  }
  const time = new Date(value)
  // JavaScript takes February 30 for March 2.
  const day = new Date(value.slice(0, 10)).getUTCDate()
  return Number.isNaN(time.getTime()) || day !== Number(value.slice(8, 10)) ? undefined : time
}
