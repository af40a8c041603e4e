/**
 * Who statements run for, the most urgent first. No level can take all that another one needs: on
 * a server each has connections and a waiting list of its own. The embedded engine has one
 * connection, which goes to the most urgent waiting statement, and now and then to another one.
 *
 * - `deliveries`: storing webhook deliveries.
 * - `trusted`: signed-in people, holders of tokens, the program's own work. The default.
 * - `upkeep`: vacuuming and analyzing on the embedded engine. A server does so by itself.
 * - `strangers`: requests that nobody has signed in for.
 * - `extras`: what an answer can do without.
 */
export const LEVELS = ['deliveries', 'trusted', 'upkeep', 'strangers', 'extras'] as const

export type Level = (typeof LEVELS)[number]

/** What a level may take. */
export interface Share {
  connections: number
  /** Statements that may wait for a connection; one more is refused at once. */
  waiting: number
  /** Longest wait for a connection, in milliseconds. */
  waitMs: number
  /** Longest run of a statement, in milliseconds. */
  deadlineMs: number
}

export type Shares = Readonly<Record<Level, Share>>

const EXTRAS_MS = 500

/**
 * A vacuum of a heavily changed table takes 10 s a gigabyte, and an interrupted one is lost. Under
 * the deadline of other statements a large table would never be vacuumed.
 */
const UPKEEP_MS = 60_000

/** A value for each level. */
export function perLevel<T>(make: (level: Level) => T): Readonly<Record<Level, T>> {
  return Object.fromEntries(LEVELS.map((level) => [level, make(level)])) as Record<Level, T>
}

/** The shares of all levels; `connections` is that of trusted callers. */
export function sharesOf(
  connections: number,
  deadlineMs: number,
  upkeepDeadlineMs = UPKEEP_MS,
): Shares {
  const quarter = Math.ceil(connections / 4)
  const times = { waitMs: deadlineMs, deadlineMs }
  const extrasMs = Math.min(EXTRAS_MS, deadlineMs)
  return {
    deliveries: { connections: quarter, waiting: 64, ...times },
    trusted: { connections, waiting: 2_048, ...times },
    upkeep: { connections: 1, waiting: 8, waitMs: deadlineMs, deadlineMs: upkeepDeadlineMs },
    strangers: { connections: quarter, waiting: 512, ...times },
    extras: { connections: 1, waiting: 8, waitMs: extrasMs, deadlineMs: extrasMs },
  }
}
