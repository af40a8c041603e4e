import { accepted } from '../../kernel/variables.ts'

/** Quiet hours of the day, by the clock of this machine, such as `22:00-07:00`. */
export const QUIET = accepted('two times of the day such as 22:00-07:00', (text) => {
  const hours = readQuiet(text)
  return hours === undefined || hours.from === hours.until ? undefined : text
})

function readQuiet(text: string): { from: number; until: number } | undefined {
  const match = /^([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)$/.exec(text)
  if (match === null) return undefined
  const [, fromHour, fromMinute, untilHour, untilMinute] = match.map(Number)
  return {
    from: (fromHour ?? 0) * 60 + (fromMinute ?? 0),
    until: (untilHour ?? 0) * 60 + (untilMinute ?? 0),
  }
}

/** Whether a time is in the quiet hours, which may go over midnight. */
export function isQuiet(quiet: string, now: Date): boolean {
  const hours = readQuiet(quiet)
  if (hours === undefined) return false
  const { from, until } = hours
  const minute = now.getHours() * 60 + now.getMinutes()
  return from < until ? minute >= from && minute < until : minute >= from || minute < until
}
