/** The accepted form of an instant, in words. */
export const INSTANT_FORM = 'a time with its zone such as 2027-01-31T12:00:00Z'

/** An instant with its zone (RFC 3339), in a year of four digits in UTC too; undefined for anything else. */
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
