import type { Database, Executor } from '../../db/client.ts'
import { retentionQueries as q } from '../../db/links/retention.ts'
import type { Log } from '../../kernel/log.ts'
import { openSteadyTime, PRUNE_BATCH, startPruning, type InBatches } from '../../kernel/repeat.ts'
import type { Clock } from '../../kernel/time.ts'
import { RESTORE_DAYS } from './names/deleted.ts'
import {
  firstClickDay,
  firstKeptDay,
  firstKeptMonth,
  type StatsLevel,
} from './visits/visits/clicks.ts'
import { DAY_MS, dayText } from './visits/visits/visit-counts.ts'

export interface RetentionOptions {
  db: Database
  clock: Clock
  log: Log
  stats: () => StatsLevel
}

/** How many changes of a link are kept, however old they are; its page shows as many. */
const MAX_CHANGES = 50
/** For how many days further changes are kept. */
const CHANGE_DAYS = 90
/** Hosts of referrers that a month of a link keeps. */
const MAX_MONTH_HOSTS = 200
/** Comes before the id of every link. */
const NO_LINK = '00000000-0000-0000-0000-000000000000'

/**
 * Removes clicks of old days, old changes of links that changed often, and deleted links that can't
 * be restored any more. Where only totals are wanted, what visits came from is removed altogether.
 */
export function startRetention({ db, clock, log, stats }: RetentionOptions) {
  const steadyNow = openSteadyTime(clock)

  async function run(inBatches: InBatches) {
    const now = steadyNow()
    // True once another instance prunes: it removes everything.
    let isOthers = false
    async function prune(batch: Batch): Promise<number> {
      if (isOthers) return 0
      const alone = async (tx: Executor) => {
        const { taken } = await q.tryPruningLock(tx, {})
        isOthers = !taken
        return taken ? batch(tx) : 0
      }
      return inBatches(() => db.transaction(alone))
    }

    const clicks = await prune(clicksBefore(now))
    const sources = await prune(sourcesBefore(now, stats()))
    await prune(sourcesToMerge(now))
    const changes = await pruneChanges(prune, now)
    const deleted = await prune(deletedBefore(now))
    const removed = { clicks, sources, changes, deleted }
    if (Object.values(removed).some((rows) => rows > 0)) log.info('pruned', removed)
  }

  return startPruning(clock, log, run)
}

/** Removes some old rows; gives how many. */
type Batch = (tx: Executor) => Promise<number>

function clicksBefore(now: Date): Batch {
  const old = { before: firstKeptDay(now), limit: PRUNE_BATCH }
  return async (tx) => (await q.pruneClicks(tx, old)).removed
}

function sourcesBefore(now: Date, stats: StatsLevel): Batch {
  const before = stats === 'full' ? firstKeptMonth(now) : dayText(now.getTime() + DAY_MS)
  return async (tx) => (await q.pruneSources(tx, { before, limit: PRUNE_BATCH })).removed
}

/** Days that no page shows by themselves become months: three years are summed in time. */
function sourcesToMerge(now: Date): Batch {
  const old = { before: firstClickDay(now), hosts: MAX_MONTH_HOSTS, limit: PRUNE_BATCH }
  return async (tx) => (await q.mergeSources(tx, old)).removed
}

function deletedBefore(now: Date): Batch {
  const old = { before: new Date(now.getTime() - RESTORE_DAYS * DAY_MS), limit: PRUNE_BATCH }
  return async (tx) => (await q.pruneDeleted(tx, old)).removed
}

/** Walks over all links, some in each batch; gives how many changes it removed. */
async function pruneChanges(prune: (batch: Batch) => Promise<number>, now: Date): Promise<number> {
  const before = new Date(now.getTime() - CHANGE_DAYS * DAY_MS)
  const bounds = { before, keep: MAX_CHANGES, links: PRUNE_BATCH, limit: PRUNE_BATCH }
  let after = NO_LINK
  let total = 0
  async function batch(tx: Executor): Promise<number> {
    const { removed, last } = await q.pruneChanges(tx, { ...bounds, after })
    total += removed
    // These links may have more.
    if (removed < PRUNE_BATCH) after = last ?? after
    return last === null ? 0 : PRUNE_BATCH
  }
  await prune(batch)
  return total
}
