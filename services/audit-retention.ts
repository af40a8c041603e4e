import { auditQueries as q } from '../db/audit.ts'
import type { Database } from '../db/client.ts'
import type { Log } from '../kernel/log.ts'
import {
  openSteadyTime,
  PRUNE_BATCH,
  startPruning,
  type InBatches,
  type Pruning,
} from '../kernel/repeat.ts'
import type { Clock } from '../kernel/time.ts'

/** Lines that are kept at most, whatever their age. */
const MAX_CHANGES = 100_000
const DAY_MS = 24 * 3_600_000

interface AuditRetentionOptions {
  db: Database
  clock: Clock
  log: Log
  /** How many days to keep a line; 0 for any age. */
  keptDays: () => number
}

/** Removes the audit's old lines. All services write there, so the program does it. */
export function startAuditRetention(options: AuditRetentionOptions): Pruning {
  const { db, clock, log, keptDays } = options
  const steadyNow = openSteadyTime(clock)

  async function run(inBatches: InBatches) {
    const days = keptDays()
    const before = new Date(days === 0 ? 0 : steadyNow().getTime() - days * DAY_MS)
    const batch = { before, kept: MAX_CHANGES, limit: PRUNE_BATCH }
    const changes = await inBatches(async () => (await q.pruneChanges(db, batch)).removed)
    if (changes > 0) log.info('pruned', { changes })
  }

  return startPruning(clock, log, run)
}
