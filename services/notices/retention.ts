import type { Database } from '../../db/client.ts'
import { noticeQueries as q } from '../../db/notices.ts'
import type { Log } from '../../kernel/log.ts'
import {
  openSteadyTime,
  PRUNE_BATCH,
  startPruning,
  type InBatches,
  type Pruning,
} from '../../kernel/repeat.ts'
import type { Clock } from '../../kernel/time.ts'

/** How long people find what they were told. */
const KEPT_MS = 7 * 24 * 3_600_000

/** What the retention of notices works with. */
interface NoticeRetentionOptions {
  db: Database
  clock: Clock
  log: Log
}

/**
 * Removes old notices. All services tell, also where no process runs that sends, so the program
 * does it.
 */
export function startNoticeRetention({ db, clock, log }: NoticeRetentionOptions): Pruning {
  const steadyNow = openSteadyTime(clock)

  async function run(inBatches: InBatches) {
    const before = new Date(Math.max(0, steadyNow().getTime() - KEPT_MS))
    const batch = { before, limit: PRUNE_BATCH }
    const notices = await inBatches(async () => (await q.pruneNotices(db, batch)).removed)
    if (notices > 0) log.info('pruned', { notices })
  }

  return startPruning(clock, log, run)
}
