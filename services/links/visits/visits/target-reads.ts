import { setImmediate as nextTick } from 'node:timers/promises'
import type { Executor } from '../../../../db/client.ts'
import { visitQueries as q, type NamedTarget } from '../../../../db/links/visits/visits.ts'
import { Unavailable } from '../../../../kernel/fault.ts'

/**
 * Reads the links that a name stands for: the one that has it, and those with a name that differs
 * in dashes only. Throws `Unavailable`: at once when too many wait already.
 */
export type ReadTargets = (name: string) => Promise<readonly NamedTarget[]>

interface Read {
  name: string
  found: PromiseWithResolvers<readonly NamedTarget[]>
}

/** Names of one statement, which then takes some milliseconds. */
const MAX_NAMES = 256
/** Names that differ in dashes only: of more, only some count. */
export const MAX_NAMESAKES = 20
const LIMITS = { namesakes: MAX_NAMESAKES, limit: MAX_NAMES * (MAX_NAMESAKES + 1) }

/**
 * Reads links one statement at a time: names gather while the previous one runs and are read
 * together. An idle service reads a link at once, and one whose links are not in memory reads many
 * by few statements.
 */
export function createTargetReads(db: Executor, maxWaiting: number): ReadTargets {
  let waiting: Read[] = []
  let isRunning = false

  async function run() {
    // What has arrived in this tick of the event loop goes into one statement.
    await nextTick()
    while (waiting.length > 0) {
      const reads = waiting.slice(0, MAX_NAMES)
      waiting = waiting.slice(MAX_NAMES)
      try {
        const names = reads.map(({ name }) => name)
        const rows = await q.findTargets(db, { names, ...LIMITS })
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
    const read = { name, found: Promise.withResolvers<readonly NamedTarget[]>() }
    waiting.push(read)
    if (!isRunning) void run()
    isRunning = true
    return read.found.promise
  }
}
