import type { ClickKind } from '../../../../db/links/visits/visits.ts'
import { OTHER } from './sources.ts'

/** Numbers of visits by name. */
type Counts = Readonly<Record<string, number>>

/** Clicks of a link on a day (UTC) and of a kind: a row of the statement. */
export interface LinkClicks {
  link_id: string
  day: string
  kind: ClickKind
  clicks: number
  /** When the last visit of the link came; it says nothing in a row of previews. */
  last: Date
}

/** Where the visits of a link on a day (UTC) came from, and with what: a row of the statement. */
export interface DaySources {
  link_id: string
  day: string
  referrers: Counts
  clients: Counts
}

/** What was counted of a link on a day. */
interface LinkCounts extends Record<ClickKind, number> {
  last: number
  referrers: Map<string, number>
  clients: Map<string, number>
}

/** What was counted on a day. */
interface DayCounts {
  day: string
  /** When the day begins. */
  from: number
  byLink: Map<string, LinkCounts>
}

export const DAY_MS = 86_400_000

const KINDS = ['human', 'bot', 'preview'] as const satisfies readonly ClickKind[]

/** Hosts of a link and day that are counted by name. */
export const MAX_HOSTS = 50
/**
 * Hosts that wait in memory. Strangers choose them: 10,000 take 6 MiB at most, and twice that
 * while the database is away.
 */
const MAX_WAITING_HOSTS = 10_000
/** Rows of one statement: with more, all others wait longer for the embedded engine. */
const MAX_BATCH_ROWS = 250
/** Hosts in the rows of one statement. */
const MAX_BATCH_HOSTS = 1_000

/**
 * Counts visits in memory: a visit finds all counts of its link in one place. While the database
 * is away, only links in memory are redirected: that bounds their number.
 */
export function createVisitCounts() {
  let days = new Map<number, DayCounts>()
  /** The day of the last visit: the next one is nearly always of the same day. */
  let current: DayCounts | undefined
  let hosts = 0

  function dayOf(time: number) {
    if (current === undefined || time < current.from || time >= current.from + DAY_MS) {
      current = days.getOrInsertComputed(Math.floor(time / DAY_MS), newDay)
    }
    return current
  }

  return {
    /** Counts a click, and gives all counts of its link and day. */
    add(link_id: string, kind: ClickKind, time: number): LinkCounts {
      const counts = dayOf(time).byLink.getOrInsertComputed(link_id, newCounts)
      counts[kind]++
      if (kind !== 'preview') counts.last = time
      return counts
    },

    /** Counts where a visit came from, and with what. What is beyond a bound counts as `other`. */
    addSource({ referrers, clients }: LinkCounts, referrer: string, client: string) {
      const isKnown = referrers.has(referrer)
      const isFull = referrers.size >= MAX_HOSTS || hosts >= MAX_WAITING_HOSTS
      if (!isKnown && !isFull) hosts++
      increment(referrers, !isKnown && isFull ? OTHER : referrer)
      increment(clients, client)
    },

    /** What was counted since the last call. */
    take(): readonly DayCounts[] {
      const taken = [...days.values()]
      days = new Map()
      current = undefined
      hosts = 0
      return taken
    },
  }
}

function newDay(number: number): DayCounts {
  const from = number * DAY_MS
  return { day: dayText(from), from, byLink: new Map() }
}

function newCounts(): LinkCounts {
  return { human: 0, bot: 0, preview: 0, last: 0, referrers: new Map(), clients: new Map() }
}

function increment(counts: Map<string, number>, name: string) {
  counts.set(name, (counts.get(name) ?? 0) + 1)
}

/** The rows of counted clicks, in batches that hold the database shortly. */
export function* clickBatches(days: readonly DayCounts[]): Generator<readonly LinkClicks[]> {
  let rows: LinkClicks[] = []
  for (const { day, byLink } of days) {
    for (const [link_id, counts] of byLink) {
      const last = new Date(counts.last)
      for (const kind of KINDS) {
        if (counts[kind] > 0) rows.push({ link_id, day, kind, clicks: counts[kind], last })
        if (rows.length < MAX_BATCH_ROWS) continue
        yield rows
        rows = []
      }
    }
  }
  if (rows.length > 0) yield rows
}

/** The rows of counted sources, in batches that hold the database shortly. */
export function* sourceBatches(days: readonly DayCounts[]): Generator<readonly DaySources[]> {
  let rows: DaySources[] = []
  let hosts = 0
  for (const { day, byLink } of days) {
    for (const [link_id, { referrers, clients }] of byLink) {
      if (clients.size === 0) continue
      const counts = {
        referrers: Object.fromEntries(referrers),
        clients: Object.fromEntries(clients),
      }
      rows.push({ link_id, day, ...counts })
      hosts += referrers.size
      if (rows.length < MAX_BATCH_ROWS && hosts < MAX_BATCH_HOSTS) continue
      yield rows
      rows = []
      hosts = 0
    }
  }
  if (rows.length > 0) yield rows
}

export function dayText(time: number): string {
  return new Date(time).toISOString().slice(0, 10)
}
