import { Cron } from 'croner'

// Times that come back by the clock of a zone, right in nights of 23 and 25 hours.

/** Reads a pattern of five fields. Undefined for an invalid pattern, and for one without a next time. */
export function readCron(cron: string, tz = 'UTC'): Cron | undefined {
  try {
    const times = new Cron(cron, { mode: '5-part', timezone: tz, paused: true })
    return times.nextRun() === null ? undefined : times
  } catch {
    return undefined
  }
}
