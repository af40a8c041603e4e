import { Cron } from 'croner'

// Times that come back by the clock of a zone, right in nights of 23 and 25 hours.

/** What is accepted, for messages. */
export const ZONE_FORM = 'a time zone such as Europe/Berlin'

/** Whether a name is a time zone, such as Europe/Berlin. */
export function isZone(tz: string): boolean {
  try {
    void new Intl.DateTimeFormat('en', { timeZone: tz })
    return true
  } catch {
    return false
  }
}

/** Reads a pattern of five fields. Undefined for an invalid pattern, and for one without a next time. */
export function readCron(cron: string, tz = 'UTC'): Cron | undefined {
  try {
    const times = new Cron(cron, { mode: '5-part', timezone: tz, paused: true })
    return times.nextRun() === null ? undefined : times
  } catch {
    return undefined
  }
}
