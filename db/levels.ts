/**
 * Who statements run for, the most urgent first. Each level has connections and a waiting list of its own, so
 * that no level can fill what another one needs. The embedded engine, whose one session all share, takes the
 * statements of an earlier level first.
 *
 * - `deliveries`: storing webhook deliveries.
 * - `trusted`: signed-in people, holders of tokens, the program's own work. The default.
 * - `strangers`: requests that nobody has signed in for.
 * - `extras`: what an answer can do without. Refused while statements of another level wait for a connection.
 */
export const LEVELS = ['deliveries', 'trusted', 'strangers', 'extras'] as const

export type Level = (typeof LEVELS)[number]

/** What a level may take. */
export interface Share {
  readonly connections: number
  /** Statements that may wait for a connection; one more is refused at once. */
  readonly waiting: number
  /** Longest wait for a connection, and longest run of a statement, in milliseconds. */
  readonly deadlineMs: number
}

const EXTRAS_MS = 500

/** The share of each level, where trusted callers have so many connections. */
export function sharesOf(connections: number, deadlineMs: number): Readonly<Record<Level, Share>> {
  const quarter = Math.ceil(connections / 4)
  return {
    deliveries: { connections: quarter, waiting: 64, deadlineMs },
    trusted: { connections, waiting: 2_048, deadlineMs },
    strangers: { connections: quarter, waiting: 512, deadlineMs },
    extras: { connections: 1, waiting: 8, deadlineMs: Math.min(EXTRAS_MS, deadlineMs) },
  }
}
