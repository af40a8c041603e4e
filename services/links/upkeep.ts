import type { Database } from '../../db/client.ts'
import { vacuum } from '../../db/links/upkeep.ts'
import type { Clock } from '../../kernel/clock.ts'
import { messageOf, type Log } from '../../kernel/log.ts'
import { repeat } from '../../kernel/repeat.ts'

const HOUR_MS = 3_600_000

/** Vacuums now and each hour, where no autovacuum does it; gives what ends it. */
export function startUpkeep(db: Database, clock: Clock, log: Log): () => Promise<void> {
  const upkeep = repeat(clock, HOUR_MS, () => vacuum(db), {
    fails: (error) => log.warn('vacuum failed', { error: messageOf(error) }),
    works: () => log.info('vacuum works again'),
  })
  void upkeep.now()
  return upkeep.stop
}
