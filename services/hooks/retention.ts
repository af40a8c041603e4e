import type { Database } from '../../db/client.ts'
import { retentionQueries as q } from '../../db/hooks/retention.ts'
import { rejectionQueries } from '../../db/hooks/rejections.ts'
import { type Clock, openSteadyTime } from '../../kernel/time.ts'
import type { Log } from '../../kernel/log.ts'
import { PRUNE_BATCH, startPruning, type InBatches, type Pruning } from '../../kernel/repeat.ts'
import type { Registry } from './registry.ts'
import { MAX_REJECTIONS } from './rejections.ts'
import type { Forwarders } from './forward/forwarders.ts'

const DAY_MS = 24 * 3_600_000
const ACTIVITY_DAYS = 2
const FORWARDER_DAYS = 90

/** Removes the events that the settings do not keep, old counters, and forwarders that have gone. */
export function startRetention(
  db: Database,
  registry: Registry,
  forwarders: Pick<Forwarders, 'names'>,
  clock: Clock,
  log: Log,
): Pruning {
  const steadyNow = openSteadyTime(clock)
  let first = true

  async function run(inBatches: InBatches): Promise<void> {
    const { retention_max_age_days, retention_max_rows } = registry.settings
    const now = steadyNow().getTime()
    // At the start nobody has reconnected yet: after a long pause every forwarder would seem gone.
    if (!first) {
      const before = new Date(now - FORWARDER_DAYS * DAY_MS)
      await q.pruneForwarders(db, { connected: forwarders.names, before, now: new Date(now) })
    }
    first = false
    const limit = PRUNE_BATCH
    let removed = 0
    if (retention_max_age_days > 0) {
      const before = new Date(now - retention_max_age_days * DAY_MS)
      removed += await inBatches(
        async () => (await q.pruneEventsByAge(db, { before, limit })).removed,
      )
    }
    if (retention_max_rows > 0) {
      const keep = retention_max_rows
      removed += await inBatches(
        async () => (await q.pruneEventsByCount(db, { keep, limit })).removed,
      )
    }
    await rejectionQueries.pruneRejections(db, { keep: MAX_REJECTIONS })
    const before = new Date(now - ACTIVITY_DAYS * DAY_MS)
    await q.pruneActivity(db, { before })
    await rejectionQueries.pruneRejectionMinutes(db, { before })
    if (removed > 0) log.info('pruned', { events: removed })
  }

  return startPruning(clock, log, run)
}
