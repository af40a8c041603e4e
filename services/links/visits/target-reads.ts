import { setImmediate as nextTick } from 'node:timers/promises'
import type { Executor } from '../../../db/client.ts'
import { visitQueries as q, type Target } from '../../../db/links/visits.ts'
import { Unavailable } from '../../../kernel/fault.ts'

/**
 * Reads the link with a slug; undefined when no link has it. Throws `Unavailable`: at once when
 * too many wait already.
 */
export type ReadTarget = (slug: string) => Promise<Target | undefined>

interface Read {
  slug: string
  found: PromiseWithResolvers<Target | undefined>
}

/** Slugs of one statement, which then takes some milliseconds. */
const MAX_SLUGS = 256

/**
 * Reads links one statement at a time: slugs gather while the previous one runs and are read
 * together. An idle service reads a link at once, and one whose links are not in memory reads many
 * by few statements.
 */
export function createTargetReads(db: Executor, maxWaiting: number): ReadTarget {
  let waiting: Read[] = []
  let isRunning = false

  async function run() {
    // What has arrived in this tick of the event loop goes into one statement.
    await nextTick()
    while (waiting.length > 0) {
      const reads = waiting.slice(0, MAX_SLUGS)
      waiting = waiting.slice(MAX_SLUGS)
      try {
        const slugs = reads.map(({ slug }) => slug)
        const rows = await q.findTargets(db, { slugs, limit: MAX_SLUGS })
        const bySlug = new Map(rows.map((row) => [row.slug, row]))
        for (const { slug, found } of reads) found.resolve(bySlug.get(slug))
      } catch (error) {
        // Visits that gathered meanwhile can't wait for a second deadline of a stalled database.
        for (const { found } of [...reads, ...waiting]) found.reject(error)
        waiting = []
      }
    }
    isRunning = false
  }

  return async (slug) => {
    if (waiting.length >= maxWaiting) {
      throw new Unavailable(`${maxWaiting} visits wait for their links already`)
    }
    const read = { slug, found: Promise.withResolvers<Target | undefined>() }
    waiting.push(read)
    if (!isRunning) void run()
    isRunning = true
    return read.found.promise
  }
}
