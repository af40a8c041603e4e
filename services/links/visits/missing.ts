import type { Database } from '../../../db/client.ts'
import { missingQueries as q } from '../../../db/links/visits/missing.ts'
import type { Log } from '../../../kernel/log.ts'
import { repeat, reportsTo } from '../../../kernel/repeat.ts'
import type { Clock } from '../../../kernel/time.ts'
import { DAY_MS, dayText } from './visits/visit-counts.ts'

// Slugs without a link that visitors ask for: strangers may ask for any, so only some are kept.

interface MissingOptions {
  db: Database
  clock: Clock
  log: Log
}

const SAVE_MS = 10_000
/** Slugs that are counted between two writes, and those that are kept of a day. */
const MAX_SLUGS = 1_000
/** Days that the list covers, today included. */
export const MISSING_DAYS = 30
const MAX_LISTED = 100

/** Counts in memory and writes the sums every ten seconds: a visit waits for nothing. */
export function startMissing({ db, clock, log }: MissingOptions) {
  let waiting = new Map<string, number>()

  function add(slug: string, visits: number): void {
    const before = waiting.get(slug)
    if (before === undefined && waiting.size >= MAX_SLUGS) return
    waiting.set(slug, (before ?? 0) + visits)
  }

  async function save(): Promise<void> {
    if (waiting.size === 0) return
    const taken = waiting
    waiting = new Map()
    const now = clock.now()
    const day = dayText(now.getTime())
    const missing = [...taken].map(([slug, visits]) => ({ slug, visits }))
    try {
      await q.saveMissing(db, { day, missing })
    } catch (error) {
      // If the answer alone was lost, they count twice.
      for (const [slug, visits] of taken) add(slug, visits)
      throw error
    }
    await q.trimMissing(db, { day, before: firstDay(now), keep: MAX_SLUGS })
  }

  const reports = reportsTo(log, 'missing slugs not written', 'missing slugs are written again')
  const saving = repeat(clock, SAVE_MS, 'missing slugs', save, reports)
  return {
    /** A visitor asked for a slug that no link has. */
    count: (slug: string) => add(slug, 1),
    /** Writes the rest, and no more afterwards. */
    async close(): Promise<void> {
      await saving.now()
      await saving.stop()
    },
  }
}

/** The slugs that were asked for most and that no link has. */
export function listMissing(db: Database, now: Date) {
  return q.listMissingSlugs(db, { since: firstDay(now), limit: MAX_LISTED })
}

function firstDay(now: Date): string {
  return dayText(now.getTime() - (MISSING_DAYS - 1) * DAY_MS)
}
