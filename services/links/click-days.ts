const DAY_MS = 86_400_000

/** How many days pages tell clicks of, today included. */
export const CLICK_DAYS = 30

/** The first of the days that pages tell clicks of (UTC), such as `2026-01-31`. */
export function firstClickDay(now: Date): string {
  return dayText(now.getTime() - (CLICK_DAYS - 1) * DAY_MS)
}

/** Those days, oldest first. */
export function clickDays(now: Date): readonly string[] {
  const first = now.getTime() - (CLICK_DAYS - 1) * DAY_MS
  return Array.from({ length: CLICK_DAYS }, (_, at) => dayText(first + at * DAY_MS))
}

function dayText(time: number): string {
  return new Date(time).toISOString().slice(0, 10)
}
