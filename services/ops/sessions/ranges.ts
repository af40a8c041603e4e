const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/** The times whose sessions are asked for most. */
export const RANGES = ['night', 'today', 'week', 'days'] as const
export type RangeName = (typeof RANGES)[number]

/** From `since` to just before `until`. */
export interface Range {
  since: Date
  until: Date
}

/** Which range is asked for; null for all times. The two days are those of `days`. */
export interface AskedRange {
  when: RangeName | null
  from: Date | null
  to: Date | null
}

const NIGHT_BEGINS_MS = 18 * HOUR_MS
const NIGHT_ENDS_MS = 8 * HOUR_MS
const EVER: Range = { since: new Date(0), until: new Date(Date.UTC(9999, 11, 31)) }

/** The range in UTC. The last night is from 18:00 to 8:00; it may not be over yet. */
export function rangeOf({ when, from, to }: AskedRange, now: Date): Range {
  const midnight = Math.floor(now.getTime() / DAY_MS) * DAY_MS
  switch (when) {
    case null:
      return EVER
    case 'night': {
      const since = new Date(midnight - DAY_MS + NIGHT_BEGINS_MS)
      return { since, until: new Date(midnight + NIGHT_ENDS_MS) }
    }
    case 'today':
      return { ...EVER, since: new Date(midnight) }
    case 'week':
      return { ...EVER, since: new Date(now.getTime() - 7 * DAY_MS) }
    case 'days': {
      const until = to === null ? EVER.until : new Date(to.getTime() + DAY_MS)
      return { since: from ?? EVER.since, until }
    }
  }
}
