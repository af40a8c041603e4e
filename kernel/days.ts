// Days of time zones, as people choose them on pages.

/** The accepted form of a time zone, in words. */
export const ZONE_FORM = 'a time zone such as Europe/Berlin'

/** The name of a time zone, UTC for an empty text; undefined for an unknown one. */
export function readZone(text: string): string | undefined {
  try {
    const timeZone = text === '' ? 'UTC' : text
    return new Intl.DateTimeFormat('en', { timeZone }).resolvedOptions().timeZone
  } catch {
    // RangeError: unknown.
    return undefined
  }
}

/** Whether a text is the name of a time zone. */
export function isZone(text: string): boolean {
  return text !== '' && readZone(text) !== undefined
}

/** The accepted form of a day, in words. */
export const DAY_FORM = 'a day such as 2027-01-31'

/** A day as a field of dates has it, in a year of four digits; undefined for anything else. */
export function readDay(text: string): Temporal.PlainDate | undefined {
  if (!/^[1-9]\d{3}-\d\d-\d\d$/.test(text)) return undefined
  try {
    return Temporal.PlainDate.from(text)
  } catch {
    // RangeError: a day such as 30 February.
    return undefined
  }
}

/** The day of an instant in a time zone. */
export function dayOf(at: Date, zone: string): Temporal.PlainDate {
  return Temporal.Instant.from(at.toISOString()).toZonedDateTimeISO(zone).toPlainDate()
}

/** When the clocks of a time zone show an hour of a day, its beginning where none is given. */
export function hourOf(day: Temporal.PlainDate, zone: string, hour?: number): Date {
  const plainTime = hour === undefined ? undefined : { hour }
  return new Date(day.toZonedDateTime({ timeZone: zone, plainTime }).epochMilliseconds)
}
