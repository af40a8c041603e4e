import type { Database } from '../../../db/client.ts'
import { operationQueries } from '../../../db/ops/operations.ts'
import { sessionQueries as q, type Lease } from '../../../db/ops/sessions.ts'
import { messageOf } from '../../../kernel/log.ts'
import { repeat } from '../../../kernel/repeat.ts'
import { addEvent } from '../events.ts'
import { endMarked, operationMarker, isAlive } from '../processes/proc.ts'
import type { OutputOptions } from './output.ts'

export interface LeaseOptions extends Pick<OutputOptions, 'db' | 'clock' | 'log'> {
  readonly holder: string
  readonly machine: string
}

/** What this process knows of its own sessions. */
export interface OwnSessions {
  readonly runs: (id: number) => boolean
  /** Why it does not run a session whose lease it has; undefined while a start is under way. */
  readonly orphanCause: (id: number) => string | undefined
}

/**
 * Who had the lease: this process, one of this machine that has ended, or one that is not heard of.
 */
type FormerHolder = 'self' | 'dead' | 'silent'

/** A lease that is not renewed for this long has expired. */
const LEASE_MS = 20_000
/**
 * One heartbeat and a little. A lease that was renewed in this time is alive, whatever the clocks
 * say.
 */
const RENEWED_MS = 6_000
const CHECK_MS = 5_000
const MAX_OPEN_ACTIONS = 1_000

/**
 * Any instance that finds an expired lease fails that session. The first check is done when this
 * resolves.
 */
export async function watchLeases(options: LeaseOptions, own: OwnSessions) {
  const { db, clock, log, holder, machine } = options
  let seen: { readonly id: number; readonly beat: number; readonly since: number } | undefined

  /**
   * Clocks of two machines may differ, so the lease must also stand still. The first check can't
   * know that.
   */
  function isExpired({ id, heartbeat_at }: Lease, isFirst: boolean): boolean {
    const [beat, now] = [heartbeat_at.getTime(), clock.elapsed()]
    seen = seen?.id === id && seen.beat === beat ? seen : { id, beat, since: now }
    const unchanged = now - seen.since
    if (unchanged > LEASE_MS) return true
    return clock.now().getTime() - beat > LEASE_MS && (isFirst || unchanged > RENEWED_MS)
  }

  /** True if there was such a session. */
  async function check(isFirst = false): Promise<boolean> {
    const lease = await q.findLease(db, {})
    if (lease === undefined || own.runs(lease.id)) return false
    const isHere = lease.machine === machine
    const cause = isHere && lease.holder === holder ? own.orphanCause(lease.id) : undefined
    if (cause !== undefined) return failSession(options, lease, 'self', isHere, cause)
    const isDead = isHere && !isAlive(lease.holder)
    if (!isDead && !isExpired(lease, isFirst)) return false
    const former = isDead ? 'dead' : 'silent'
    return failSession(options, lease, former, isHere, 'the process that ran it is gone')
  }

  await check(true)
  const checks = repeat(clock, CHECK_MS, async () => void (await check()), {
    fails: (error) => log.warn('lapsed sessions not ended', { error: messageOf(error) }),
    works: () => log.info('lapsed sessions are ended again'),
  })
  return { check, stop: checks.stop }
}

/** False if another instance has failed it, or its holder has just renewed the lease. */
async function failSession(
  { db, clock, log }: LeaseOptions,
  { id, marker, heartbeat_at }: Lease,
  former: FormerHolder,
  isHere: boolean,
  cause: string,
): Promise<boolean> {
  // Before the row ends: if this process dies in between, the next check must find them again.
  if (former === 'self') await endMarked(marker)
  if (former === 'dead') await endDescendants(db, id, marker)
  const now = clock.now()
  const isFailed = await db.transaction(async (tx) => {
    if ((await q.failLapsed(tx, { id, heartbeat_at, now })) === undefined) return false
    const message = `Session ${id} failed: ${cause}`
    const event = { session: id, service: 'gatehouse', now }
    await addEvent(tx, { ...event, level: 'critical', message })
    await operationQueries.endActions(tx, { session: id, outcome: cause })
    await q.announceSessions(tx, {})
    return true
  })
  if (!isFailed) return false
  log.warn('session failed: nobody runs it', { session: id, cause })
  // The holder lives, and sweeps after its operations itself.
  if (isHere && former === 'silent') await endMarked(marker)
  return true
}

/**
 * Kills what a session has left, and what those of its operations have left that did not end well.
 */
async function endDescendants(db: Database, session: number, marker: string): Promise<void> {
  await endMarked(marker)
  const actions = await operationQueries.listOpenActions(db, { session, limit: MAX_OPEN_ACTIONS })
  for (const { id } of actions) await endMarked(operationMarker(marker, id))
}
