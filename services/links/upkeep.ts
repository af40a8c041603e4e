import type { Database } from '../../db/client.ts'
import { vacuum } from '../../db/links/upkeep.ts'
import type { Clock } from '../../kernel/clock.ts'
import { messageOf, type Log } from '../../kernel/log.ts'

const HOUR_MS = 3_600_000

/** Vacuums now and each hour, where no autovacuum does it; gives what ends it. */
export function startUpkeep(db: Database, clock: Clock, log: Log): () => Promise<void> {
  let running = Promise.resolve()
  function upkeep(): void {
    running = running
      .then(() => vacuum(db))
      .catch((error: unknown) => log.warn('vacuum failed', { error: messageOf(error) }))
  }
  const stop = clock.every(HOUR_MS, upkeep)
  upkeep()
  return () => {
    stop()
    return running
  }
}
