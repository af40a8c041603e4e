import { OTHER } from './sources.ts'

/** Numbers of visits by name. */
type Counts = Readonly<Record<string, number>>

/** Where the visits of a link on a day (UTC) came from, and with what: a row of the statement. */
export interface DaySources {
  link_id: string
  day: string
  referrers: Counts
  clients: Counts
}

/** What waits to be written of a link. */
interface LinkSources {
  referrers: Map<string, number>
  clients: Map<string, number>
}

/** Hosts of a link and day that are counted by name. */
export const MAX_HOSTS = 50
/**
 * Hosts that wait in memory. Strangers choose them: 10,000 take 6 MiB at most, and twice that
 * while the database is away.
 */
const MAX_WAITING_HOSTS = 10_000
/** Rows of one statement, and hosts in them. */
const MAX_BATCH_ROWS = 250
const MAX_BATCH_HOSTS = 1_000

/** Counts in memory where visits come from. What is beyond a bound counts as `other`. */
export function createSourceCounts() {
  /** By day, then by link. */
  let waiting = new Map<string, Map<string, LinkSources>>()
  let hosts = 0

  return {
    add(link_id: string, day: string, referrer: string, client: string) {
      const ofDay = waiting.getOrInsertComputed(day, emptyDay)
      const { referrers, clients } = ofDay.getOrInsertComputed(link_id, emptySources)
      const isKnown = referrers.has(referrer)
      const isFull = referrers.size >= MAX_HOSTS || hosts >= MAX_WAITING_HOSTS
      if (!isKnown && !isFull) hosts++
      increment(referrers, !isKnown && isFull ? OTHER : referrer)
      increment(clients, client)
    },

    /** What gathered since the last call, in batches that hold the database shortly. */
    take(): Generator<readonly DaySources[]> {
      const taken = waiting
      waiting = new Map()
      hosts = 0
      return batchesOf(taken)
    },
  }
}

function emptyDay() {
  return new Map<string, LinkSources>()
}

function emptySources(): LinkSources {
  return { referrers: new Map(), clients: new Map() }
}

function increment(counts: Map<string, number>, name: string) {
  counts.set(name, (counts.get(name) ?? 0) + 1)
}

function* batchesOf(taken: ReadonlyMap<string, ReadonlyMap<string, LinkSources>>) {
  let rows: DaySources[] = []
  let hosts = 0
  for (const [day, ofDay] of taken) {
    for (const [link_id, { referrers, clients }] of ofDay) {
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
