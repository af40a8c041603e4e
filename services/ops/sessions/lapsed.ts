import type { Database } from '../../../db/client.ts'
import { endActions } from '../../../db/ops/actions.ts'
import { addEvent } from '../../../db/ops/events.ts'
import type { Lease } from '../../../db/ops/sessions.ts'
import { announceSessions, failLapsed } from '../../../db/ops/sessions.ts'
import type { Clock } from '../../../kernel/time.ts'
import type { Log } from '../../../kernel/log.ts'
import { endMarked } from '../../../kernel/spawn.ts'
import { endLeft } from '../left-behind.ts'

/** A session that nobody runs. */
export interface Lapsed {
  readonly lease: Lease
  /** Its holder is a process of this machine that has ended, this one, or one that is not heard of. */
  readonly holder: 'dead' | 'this' | 'silent'
  /** Whether its processes are on this machine. */
  readonly here: boolean
  readonly cause: string
}

/** Ends such a session: its processes, its row, and what its operations have come to. */
export async function endLapsedSession(
  { db, clock, log }: { readonly db: Database; readonly clock: Clock; readonly log: Log },
  { lease, holder, here, cause }: Lapsed,
): Promise<void> {
  // Before its row ends: were this process to end in between, nobody would look for them again.
  if (holder === 'dead') await endLeft(db, lease)
  if (holder === 'this') await endMarked(lease.marker)
  const at = clock.now()
  const failed = await db.transaction(async (tx) => {
    if (!(await failLapsed(tx, lease.id, lease.heartbeat_at, at))) return false
    const message = `Session ${lease.id} failed: ${cause}`
    await addEvent(tx, {
      ...{ session_id: lease.id, level: 'critical', service: 'gatehouse', message },
      created_at: at,
    })
    await endActions(tx, lease.id, cause)
    await announceSessions(tx)
    return true
  })
  // Another instance has failed it, or its holder has renewed it right then.
  if (!failed) return
  log.warn('session failed: nobody runs it', { session: lease.id, cause })
  // It lives: what its operations have left it ends itself, unless they ended well.
  if (here && holder === 'silent') await endMarked(lease.marker)
}
