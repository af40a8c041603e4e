import { dayOf, hourOf, readDay, readZone } from '../../../../kernel/days.ts'

const WEEK_MS = 7 * 24 * 3_600_000

/** The times whose sessions are asked for most. */
export const RANGES = ['night', 'today', 'week', 'days'] as const
export type RangeName = (typeof RANGES)[number]

/** From `since` to just before `until`. */
export interface Range {
  since: Date
  until: Date
}

/** Which range is asked for; null for all times. */
export interface AskedRange {
  when: RangeName | null
  /** The first and the last day of `days`, such as 2027-01-31. */
  from: string | null
  to: string | null
  /** The time zone whose days are meant; empty for UTC. */
  zone: string
}

const NIGHT_BEGINS = 18
const NIGHT_ENDS = 8
const EVER: Range = { since: new Date(0), until: new Date(Date.UTC(9999, 11, 31)) }

/** The range. The last night is from 18:00 to 8:00; it may not be over yet. */
export function rangeOf({ when, from, to, zone: named }: AskedRange, now: Date): Range {
  const zone = readZone(named) ?? 'UTC'
  const today = dayOf(now, zone)
  switch (when) {
    case null:
      return EVER
    case 'night': {
      const since = hourOf(today.subtract({ days: 1 }), zone, NIGHT_BEGINS)
      return { since, until: hourOf(today, zone, NIGHT_ENDS) }
    }
    case 'today':
      return { ...EVER, since: hourOf(today, zone) }
    case 'week':
      return { ...EVER, since: new Date(now.getTime() - WEEK_MS) }
    case 'days': {
      const [first, last] = [readDay(from ?? ''), readDay(to ?? '')]
      return {
        since: first === undefined ? EVER.since : hourOf(first, zone),
        until: last === undefined ? EVER.until : hourOf(last.add({ days: 1 }), zone),
      }
    }
  }
}
