import { setImmediate as nextPass } from 'node:timers/promises'
import type { Executor } from '../../../../db/client.ts'
import { visitQueries as q, type NamedTarget } from '../../../../db/links/visits/visits.ts'
import { Unavailable } from '../../../../kernel/fault.ts'
import { MAX_NAMESAKES } from '../../names/aliases/names.ts'
import type { OwnVisits, Tally, TallyOf } from './tallies.ts'

/** A link by one of its names, with its visits up to now. */
export interface ReadTarget extends NamedTarget {
  tally: Tally | undefined
}

/**
 * Reads the links that a name stands for: the one that has it, and those with a name that differs
 * in dashes only. Throws `Unavailable`: at once when too many wait already.
 */
export type ReadTargets = (name: string) => Promise<readonly ReadTarget[]>

interface Read {
  name: string
  found: PromiseWithResolvers<readonly ReadTarget[]>
}

/** What knows the visits of links that are read. */
interface ReadVisits {
  own: OwnVisits
  tallyOf: TallyOf
}

/** Names of one statement, which then takes some milliseconds. */
const MAX_NAMES = 256
const LIMITS = { namesakes: MAX_NAMESAKES, limit: MAX_NAMES * (MAX_NAMESAKES + 1) }

/**
 * Reads links one statement at a time: names gather while the previous one runs and are read
 * together. An idle service reads a link at once, and one whose links are not in memory reads many
 * by few statements.
 */
export function createTargetReads(
  db: Executor,
  { own, tallyOf }: ReadVisits,
  maxWaiting: number,
): ReadTargets {
  let waiting: Read[] = []
  let isRunning = false

  async function readRows(names: readonly string[]): Promise<readonly ReadTarget[]> {
    using reading = own.startReading()
    const rows = await q.findTargets(db, { names, writer: own.writer, ...LIMITS })
    return rows.map((row) => ({ ...row, tally: tallyOf(row, reading) }))
  }

  async function run() {
    // What arrives in this pass of the event loop goes into one statement.
    await nextPass()
    while (waiting.length > 0) {
      const reads = waiting.slice(0, MAX_NAMES)
      waiting = waiting.slice(MAX_NAMES)
      try {
        const names = reads.map(({ name }) => name)
        const rows = await readRows(names)
        const byName = Map.groupBy(rows, ({ asked }) => asked)
        for (const { name, found } of reads) found.resolve(byName.get(name) ?? [])
      } catch (error) {
        // Visits that gathered meanwhile can't wait for a second deadline of a stalled database.
        for (const { found } of [...reads, ...waiting]) found.reject(error)
        waiting = []
      }
    }
    isRunning = false
  }

  return async (name) => {
    if (waiting.length >= maxWaiting) {
      throw new Unavailable(`${maxWaiting} visits wait for their links already`)
    }
    const read = { name, found: Promise.withResolvers<readonly ReadTarget[]>() }
    waiting.push(read)
    if (!isRunning) void run()
    isRunning = true
    return read.found.promise
  }
}
