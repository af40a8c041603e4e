import type { Database, Executor } from '../../../../db/client.ts'
import { destinationQueries as q } from '../../../../db/hooks/send/destinations.ts'
import type { Log } from '../../../../kernel/log.ts'
import { repeat, reportsTo, restAfter, type Repeat } from '../../../../kernel/repeat.ts'
import type { Clock } from '../../../../kernel/time.ts'

// A destination that is removed is first disabled by its removal: nothing is planned or sent any
// more, and nobody sees it. Its deliveries, which may be millions, go a few at a time; the row goes
// last, with its name. So a crash leaves a removal that any instance goes on with.

/**
 * Removes some deliveries of a destination that is being removed, from an event on, and the
 * destination once none is left. Gives the event to go on from; null at the end.
 */
export async function removeStep(db: Executor, name: string, from: number) {
  const { next_from } = await q.removeDeliveries(db, { name, from })
  if (next_from === null) await q.endRemoval(db, { name })
  return next_from
}

/** Finds the removals that a crash has left, and those of old replay jobs. */
const POLL_MS = 10_000

/** Goes on with removals, at the start and when it is asked to, on any number of instances. */
export function startRemovals({
  db,
  clock,
  log,
}: {
  db: Database
  clock: Clock
  log: Log
}): Repeat {
  const stopping = new AbortController()

  async function work(): Promise<void> {
    for (const { name } of await q.listRemovals(db, {})) {
      for (let from: number | null = 0; from !== null && !stopping.signal.aborted;) {
        const began = clock.elapsed()
        from = await removeStep(db, name, from)
        await restAfter(clock.elapsed() - began, stopping.signal)
      }
    }
  }

  const reports = reportsTo(log, 'destinations not removed', 'destinations are removed again')
  const removals = repeat(clock, POLL_MS, 'removal of destinations', work, reports)
  void removals.now()
  return {
    now: removals.now,
    async stop() {
      stopping.abort()
      await removals.stop()
    },
  }
}
