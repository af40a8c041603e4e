import type { Database } from '../../db/client.ts'
import {
  pruneActivity,
  pruneByAge,
  pruneByCount,
  pruneForwarders,
} from '../../db/hooks/retention.ts'
import { rejectionQueries } from '../../db/hooks/rejections.ts'
import { type Clock, openSteadyTime } from '../../kernel/time.ts'
import type { Log } from '../../kernel/log.ts'
import { PRUNE_BATCH, startPruning, type InBatches, type Pruning } from '../../kernel/repeat.ts'
import type { Registry } from './registry.ts'
import { MAX_REJECTIONS } from './rejections.ts'
import type { Relay } from './relay.ts'

const DAY_MS = 24 * 3_600_000
const ACTIVITY_DAYS = 2
const FORWARDER_DAYS = 90

/** Removes the events that the settings do not keep, and counters and forwarders that have had their day. */
export function startRetention(
  db: Database,
  registry: Registry,
  relay: Pick<Relay, 'names'>,
  clock: Clock,
  log: Log,
): Pruning {
  const steadyNow = openSteadyTime(clock)
  let first = true

  async function run(inBatches: InBatches): Promise<void> {
    const { retention_max_age_days, retention_max_rows } = registry.settings
    const now = steadyNow().getTime()
    // At the start nobody has come back yet: after a long pause every forwarder would seem gone.
    if (!first) {
      const gone = new Date(now - FORWARDER_DAYS * DAY_MS)
      await pruneForwarders(db, relay.names, gone, new Date(now))
    }
    first = false
    const oldest = new Date(now - retention_max_age_days * DAY_MS)
    let removed = 0
    if (retention_max_age_days > 0)
      removed += await inBatches(() => pruneByAge(db, oldest, PRUNE_BATCH))
    if (retention_max_rows > 0)
      removed += await inBatches(() => pruneByCount(db, retention_max_rows, PRUNE_BATCH))
    await rejectionQueries.pruneRejections(db, { keep: MAX_REJECTIONS })
    const before = new Date(now - ACTIVITY_DAYS * DAY_MS)
    await pruneActivity(db, before)
    await rejectionQueries.pruneRejectionMinutes(db, { before })
    if (removed > 0) log.info('pruned', { events: removed })
  }

  return startPruning(clock, log, run)
}
