import type { Database } from '../../../../db/client.ts'
import { operationQueries as operations } from '../../../../db/ops/agent/operations.ts'
import { sessionQueries as q, type Lease } from '../../../../db/ops/agent/sessions.ts'
import { repeat, reportsTo } from '../../../../kernel/repeat.ts'
import { addEvent } from '../../events.ts'
import { endMarked } from '../../../../kernel/processes/marked.ts'
import { isAlive } from '../../../../kernel/processes/proc.ts'
import type { OutputOptions } from './output.ts'

export interface LeaseOptions extends Pick<OutputOptions, 'db' | 'clock' | 'log'> {
  holder: string
  machine: string
}

/** What this process knows of its own sessions. */
export interface OwnSessions {
  runs: (id: number) => boolean
  /** Why it does not run a session whose lease it has; undefined while a start is under way. */
  orphanCause: (id: number) => string | undefined
}

/**
 * Who had the lease: this process, a process of this machine that has ended or is silent, or a
 * process of another machine.
 */
type FormerHolder = 'self' | 'dead' | 'silent' | 'elsewhere'

/** A lease that is not renewed for this long has expired. */
const LEASE_MS = 20_000
/**
 * One heartbeat and a little. A lease that was renewed in this time is alive, also when the
 * database's clock was set meanwhile.
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
  let seen = { id: 0, beat: 0, since: 0 }

  /**
   * The database's clock may have been set, so the lease must also stand still. The first check
   * can't know that.
   */
  function isExpired({ id, heartbeat_at, silent_ms }: Lease, isFirst: boolean): boolean {
    const beat = heartbeat_at.getTime()
    const now = clock.elapsed()
    if (seen.id !== id || seen.beat !== beat) seen = { id, beat, since: now }
    const unchanged = now - seen.since
    if (unchanged > LEASE_MS) return true
    return silent_ms > LEASE_MS && (isFirst || unchanged > RENEWED_MS)
  }

  async function check(isFirst = false) {
    const lease = await q.findLease(db, {})
    if (lease === undefined || own.runs(lease.id)) return
    const isHere = lease.machine === machine
    const isOwn = isHere && lease.holder === holder
    const cause = isOwn ? own.orphanCause(lease.id) : undefined
    if (cause !== undefined) return failSession(options, lease, 'self', cause)
    const isDead = isHere && !isAlive(lease.holder)
    if (!isDead && !isExpired(lease, isFirst)) return
    const former = isDead ? 'dead' : isHere ? 'silent' : 'elsewhere'
    return failSession(options, lease, former, 'the process that ran it is gone')
  }

  await check(true)
  const reports = reportsTo(log, 'lapsed sessions not ended', 'lapsed sessions are ended again')
  const checks = repeat(clock, CHECK_MS, 'lapsed sessions', () => check(), reports)
  return { check, stop: checks.stop }
}

/** Fails a session, unless another instance has, or its holder has just renewed the lease. */
async function failSession(
  { db, clock, log }: LeaseOptions,
  { id, marker, heartbeat_at }: Lease,
  former: FormerHolder,
  cause: string,
) {
  // Before the row ends: if this process dies in between, the next check must find them again.
  if (former === 'self') await endMarked(marker)
  if (former === 'dead') await endDescendants(db, id, marker)
  const now = clock.now()
  const isFailed = await db.transaction(async (tx) => {
    const lapsed = await q.failLapsed(tx, { id, heartbeat_at, now })
    if (lapsed === undefined) return false
    const message = `Session ${id} failed: ${cause}`
    const event = { session: id, service: 'gatehouse', message, now }
    // The session itself waits for a person.
    await addEvent(tx, { ...event, level: 'critical' }, { waits: false })
    await operations.endActions(tx, { session: id, outcome: cause })
    return true
  })
  if (!isFailed) return
  log.warn('session failed: nobody runs it', { session: id, cause })
  // The holder lives, and sweeps after its operations itself.
  if (former === 'silent') await endMarked(marker)
}

/**
 * Kills what a session has left, and what those of its operations have left that did not end well.
 */
async function endDescendants(db: Database, session: number, marker: string) {
  await endMarked(marker)
  const page = { session, limit: MAX_OPEN_ACTIONS }
  const actions = await operations.listOpenActions(db, page)
  for (const { id } of actions) await endMarked(operationMarker(marker, id))
}

/** An operation has a marker of its own, because what it starts may outlive its session. */
export function operationMarker(session: string, action: number): string {
  return `${session}/${action}`
}
