import { readCron } from '../../../../kernel/cron.ts'

// Maintenance windows that come back: days of the week and hours, by the clock of a zone.

/** What is accepted, for messages and hints. */
export const EVERY_FORM =
  'days and hours such as sat,sun 02:00-04:00, mon-fri 22:00-06:00 or daily 03:00-03:30'

const DAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat']
/** More than the longest window: a day of 25 hours. */
const LONGEST_MS = 26 * 3_600_000
/** Windows that join, such as all of Saturday and of Sunday, are one, of a week at most. */
const MAX_JOINED = 7

/** One time that a window is open. */
export interface Occurrence {
  starts_at: Date
  ends_at: Date
}

/** The pattern of crontab at which a window opens, and the one at which it closes. */
interface Window {
  opens: string
  closes: string
}

/** Whether a text names days and hours. */
export function isEvery(every: string): boolean {
  return readEvery(every) !== undefined
}

/** The occurrence that is open at `now`, else the next one; undefined for invalid days, hours or zone. */
export function occurrenceAt(every: string, tz: string, now: Date): Occurrence | undefined {
  const window = readEvery(every)
  const opens = window && readCron(window.opens, tz)
  const closes = window && readCron(window.closes, tz)
  if (opens === undefined || closes === undefined) return undefined
  let starts_at = opens.nextRun(new Date(now.getTime() - LONGEST_MS))
  let ends_at = starts_at && closes.nextRun(starts_at)
  while (starts_at !== null && ends_at !== null && ends_at <= now) {
    starts_at = opens.nextRun(starts_at)
    ends_at = starts_at && closes.nextRun(starts_at)
  }
  if (starts_at === null || ends_at === null) return undefined
  let last = starts_at
  for (let joined = 1; joined < MAX_JOINED; joined += 1) {
    const next = opens.nextRun(last)
    if (next === null || next > ends_at) break
    last = next
    ends_at = closes.nextRun(next) ?? ends_at
  }
  return { starts_at, ends_at }
}

function readEvery(every: string): Window | undefined {
  const [dayText = '', hourText = '', ...rest] = every.trim().toLowerCase().split(/ +/)
  const days = readDays(dayText)
  const hours = /^([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-4]):([0-5]\d)$/.exec(hourText)
  if (days === undefined || hours === null || rest.length > 0) return undefined
  const [, fromHour = '', fromMinute = '', hour = '', untilMinute = ''] = hours
  if (hour === '24' && untilMinute !== '00') return undefined
  if (hour === fromHour && untilMinute === fromMinute) return undefined
  const untilHour = hour === '24' ? '00' : hour
  return {
    opens: `${fromMinute} ${fromHour} * * ${days}`,
    closes: `${untilMinute} ${untilHour} * * *`,
  }
}

/** `mon-fri,sun` as crontab has it; undefined for a word that is no day. */
function readDays(text: string): string | undefined {
  if (text === 'daily') return '*'
  const days = new Set<number>()
  for (const part of text.split(',')) {
    const [from = '', until = from, ...rest] = part.split('-')
    const first = DAYS.indexOf(from)
    const last = DAYS.indexOf(until)
    if (first < 0 || last < 0 || rest.length > 0) return undefined
    for (let day = first; ; day = (day + 1) % DAYS.length) {
      days.add(day)
      if (day === last) break
    }
  }
  return [...days].join(',')
}
