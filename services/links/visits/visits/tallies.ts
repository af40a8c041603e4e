import type { NamedTarget } from '../../../../db/links/visits/visits.ts'

/** How often a link with a limit was visited. All copies of the link in memory share it. */
export interface Tally {
  visits: number
}

/** Redirected visits of this process that the database may not have yet. */
export interface OwnVisits {
  /** Names this process in the database. */
  writer: string
  /** To be called before links are read, and ended once the rows are here. */
  startReading(): Reading
}

/** A read of links that is under way. */
export interface Reading extends Disposable {
  /** Visits of a link in no batch up to `written`, the last one that the rows have. */
  unwritten(link_id: string, written: number): number
}

/** Gives the tally of a link that was just read; undefined without a limit. */
export type TallyOf = (row: NamedTarget, reading: Reading) => Tally | undefined

/**
 * The tallies of links in memory. The copies of a link hold its tally, and it goes with the last
 * one: the next read knows all visits again.
 */
export function createTallies(): TallyOf {
  const tallies = new Map<string, WeakRef<Tally>>()
  const gone = new FinalizationRegistry<string>((link_id) => {
    if (tallies.get(link_id)?.deref() === undefined) tallies.delete(link_id)
  })

  return ({ id, max_visits, clicks, written }, reading) => {
    if (max_visits === null) return undefined
    const visits = clicks + reading.unwritten(id, written)
    const known = tallies.get(id)?.deref()
    if (known !== undefined) {
      // A read that comes late has fewer visits of other instances.
      known.visits = Math.max(known.visits, visits)
      return known
    }
    const tally = { visits }
    tallies.set(id, new WeakRef(tally))
    gone.register(tally, id)
    return tally
  }
}
