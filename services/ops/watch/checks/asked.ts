import { setTimeout as sleep } from 'node:timers/promises'
import type { Database } from '../../../../db/client.ts'
import { checkQueries as q } from '../../../../db/ops/watch/checks.ts'
import { found, unavailable } from '../../../../kernel/fault.ts'

// A run that somebody asks for. A running server makes it, not the process that asks: the network
// and the files that count are those of the server.

const POLL_MS = 200
/** A server begins what is due within a second. */
const BEGINS_WITHIN_MS = 10_000
/** More than a run may take, and the wait for others before it. */
const ENDS_WITHIN_MS = 90_000

/**
 * Has a server run a check, and resolves when its result is stored; it counts at once. Throws
 * 404 for an unknown check, and 503 when no server does.
 */
export async function runNow(db: Database, id: number, now: () => Date): Promise<void> {
  found(await q.askCheck(db, { id, now: now() }), 'check')
  const began = performance.now()
  for (;;) {
    const { asked_at, running } = found(await q.readAsked(db, { id, now: now() }), 'check')
    if (asked_at === null) return
    const waited = performance.now() - began
    if (!running && waited > BEGINS_WITHIN_MS) {
      throw unavailable('no server has begun it: see whether "serve ops" runs')
    }
    if (waited > ENDS_WITHIN_MS) throw unavailable('the run has not ended yet')
    await sleep(POLL_MS)
  }
}
