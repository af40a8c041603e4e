import type { Clock } from './time.ts'
import { messageOf, type Log } from './log.ts'
import { repeat } from './repeat.ts'

/** Removes what is no longer kept: hourly, and when asked, as at the start and after a change of settings. */
export interface Pruning {
  /** Starts a run, or another one after the present run. */
  prune(): void
  /** Resolves when the present run is over. */
  close(): Promise<void>
}

/** Repeats a statement that removes a little until it removes nothing; gives how much it removed. */
export type InBatches = (batch: () => Promise<number>) => Promise<number>

const HOUR_MS = 3_600_000

/** Small batches, each a statement of its own: nobody waits long for one. */
export const PRUNE_BATCH = 500

/** Prunes by `run`, which leaves off after the present batch when the program stops. */
export function startPruning(
  clock: Clock,
  log: Log,
  run: (inBatches: InBatches) => Promise<void>,
): Pruning {
  let closed = false

  async function inBatches(batch: () => Promise<number>): Promise<number> {
    let total = 0
    for (;;) {
      const removed = closed ? 0 : await batch()
      if (removed === 0) return total
      total += removed
    }
  }

  const runs = repeat(clock, HOUR_MS, () => run(inBatches), {
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
