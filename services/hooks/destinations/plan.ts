import type { Database } from '../../../db/client.ts'
import { destinationQueries as q, type Work } from '../../../db/hooks/destinations.ts'
import { eventQueries } from '../../../db/hooks/events.ts'
import { STEP_BYTES } from '../events/events.ts'

/** Events that one step looks at. */
const STEP_EVENTS = 1_000

/**
 * Makes one step of a destination from its position towards the newest event: writes what it is
 * owed and moves the position, in one transaction. An event is visible once all before it are
 * (decision 001), so none is skipped, on any number of instances.
 */
export async function planStep(db: Database, { name, reads_payloads }: Work) {
  return db.transaction(async (tx) => {
    const owner = await q.lockDestination(tx, { name })
    if (owner?.enabled !== true) return { looked_at: 0, planned: 0 }
    const after = owner.position
    let last = Number.MAX_SAFE_INTEGER
    if (reads_payloads) {
      const step = { after, last: after + STEP_EVENTS, bytes: STEP_BYTES }
      last = (await eventQueries.searchWindowThrough(tx, step))?.id ?? last
    }
    return q.planDeliveries(tx, { name, last, rows: STEP_EVENTS })
  })
}
