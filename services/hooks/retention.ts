import type { Database } from '../../db/client.ts'
import {
  pruneActivity,
  pruneByAge,
  pruneByCount,
  pruneForwarders,
  pruneRejections,
} from '../../db/hooks/retention.ts'
import type { Clock } from '../../kernel/clock.ts'
import { messageOf, type Log } from '../../kernel/log.ts'
import { repeat } from '../../kernel/repeat.ts'
import { openSteadyTime } from '../../kernel/steady-time.ts'
import type { Registry } from './registry.ts'
import { REJECTIONS_KEPT } from './rejections.ts'
import type { Relay } from './relay.ts'

/** Removes what retention does not keep: hourly, and when asked, as at the start and after a change of settings. */
export interface Retention {
  /** Starts a run, or another one after the present run. */
  prune(): void
  /** Resolves when the present run is over. */
  close(): Promise<void>
}

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/** Small batches, each a statement of its own: ingestion never waits long for one. */
const BATCH = 500
const ACTIVITY_DAYS = 2
const FORWARDER_DAYS = 90

export function startRetention(
  db: Database,
  registry: Registry,
  relay: Pick<Relay, 'names'>,
  clock: Clock,
  log: Log,
): Retention {
  const steadyNow = openSteadyTime(clock)
  let closed = false
  let first = true

  async function run(): Promise<void> {
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
    if (retention_max_age_days > 0) removed += await inBatches(() => pruneByAge(db, oldest, BATCH))
    if (retention_max_rows > 0)
      removed += await inBatches(() => pruneByCount(db, retention_max_rows, BATCH))
    await pruneRejections(db, REJECTIONS_KEPT)
    await pruneActivity(db, new Date(now - ACTIVITY_DAYS * DAY_MS))
    if (removed > 0) log.info('pruned', { events: removed })
  }

  async function inBatches(batch: () => Promise<number>): Promise<number> {
    let total = 0
    for (;;) {
      const removed = closed ? 0 : await batch()
      if (removed === 0) return total
      total += removed
    }
  }

  const runs = repeat(clock, HOUR_MS, run, {
    fails: (error) => log.warn('prune failed', { error: messageOf(error) }),
    works: () => log.info('prune works again'),
  })
  return {
    prune: () => void runs.now(),
    close() {
      closed = true
      return runs.stop()
    },
  }
}
