import { approvalQueries as q, type Running } from '../../../../db/ops/agent/approvals.ts'
import { messageOf } from '../../../../kernel/log.ts'
import { endMarked } from '../../../../kernel/processes/marked.ts'
import { isAlive } from '../../../../kernel/processes/proc.ts'
import { repeat, reportsTo, retryWhileUnavailable } from '../../../../kernel/repeat.ts'
import { runAdmitted } from '../operations/run.ts'
import { operationMarker } from '../sessions/leases.ts'
import { expireApprovals, tellProblem } from './approvals.ts'
import { take, type ApprovalOptions, type Taken } from './take.ts'

/** What this process knows of the operations that it runs. */
interface Own {
  options: ApprovalOptions
  /** The approval that it runs. `taking`: it may have one already, and does not know which. */
  current: number | 'taking' | undefined
  /** Aborted when the program stops. */
  stop: AbortController
}

const ROUND_MS = 5_000
/** A process that has not renewed for this long is gone. */
const MAX_SILENT_MS = 30_000
const MAX_RUNNING = 100
const INTERRUPTED = 'was interrupted, and does not run again by itself'
const GONE = 'the process that ran it is gone'
const RECORD_TRIES = { tries: 5, pauseMs: 2_000 }

/** Runs what people have approved, one after the other, and ends what is over. */
export async function startApprovals(options: ApprovalOptions) {
  const { db, clock, log } = options
  const own: Own = { options, current: undefined, stop: new AbortController() }
  const runs = repeat(
    clock,
    ROUND_MS,
    'approved operations',
    async (isStopped) => {
      while (!isStopped() && (await runNext(own)));
    },
    reportsTo(log, 'approved operations not run', 'approved operations are run again'),
  )
  const rounds = repeat(
    clock,
    ROUND_MS,
    'approvals',
    () => endOverdue(own),
    reportsTo(log, 'approvals not looked after', 'approvals are looked after again'),
  )
  await db.listen('ops_approvals', () => void runs.now())
  return {
    /** Looks at what an earlier process has left, and runs what is approved. */
    begin(): void {
      void rounds.now()
      void runs.now()
    },
    /** Stops what runs; resolves when its end is recorded. */
    async close(): Promise<void> {
      own.stop.abort()
      await Promise.all([runs.stop(), rounds.stop()])
    },
  }
}

/** Takes an approved operation and runs it. False if there is none. */
async function runNext(own: Own): Promise<boolean> {
  const { db, inventory } = own.options
  const { services } = await inventory.current()
  if (own.stop.signal.aborted) return false
  own.current = 'taking'
  try {
    const taken = await db.transaction((tx) => take(tx, own.options, services))
    if (taken === undefined || taken === 'refused') return taken === 'refused'
    own.current = taken.approval.id
    await run(own, taken)
    return true
  } finally {
    own.current = undefined
  }
}

/** Runs what was taken, and records its end. */
async function run(own: Own, { approval, service, operation, action }: Taken): Promise<void> {
  const { options, stop } = own
  const { db, clock, log, redact } = options
  const { id, marker, session_id } = approval
  const job = { session: { id: session_id }, marker, signal: stop.signal }
  const { ok, outcome } = await runAdmitted({ ...options, job }, service, operation, action)
  const isInterrupted = !ok && stop.signal.aborted
  const status = ok ? 'done' : isInterrupted ? 'interrupted' : 'failed'
  const level = isInterrupted ? 'critical' : 'warning'
  const what = isInterrupted ? `${INTERRUPTED}: the server stopped` : `failed: ${outcome}`
  try {
    const retry = retryWhileUnavailable({ signal: stop.signal, ...RECORD_TRIES })
    await retry(() =>
      db.transaction(async (tx) => {
        const ended = await q.endApproval(tx, { id, status, outcome })
        if (ok || ended === undefined) return
        await tellProblem(tx, approval, level, what, clock.now())
      }),
    )
  } catch (error) {
    // The next round finds that nobody runs it.
    const fields = { approval: id, outcome, error: redact(messageOf(error)) }
    log.warn('outcome of an approval not recorded', fields)
  }
}

/** Ends what nobody has decided in time, and what the process that ran it has left. */
async function endOverdue(own: Own): Promise<void> {
  const { db, clock, holder, machine } = own.options
  await q.renewApprovals(db, { holder, machine })
  await db.transaction((tx) => expireApprovals(tx, clock.now()))
  for (const running of await q.listRunningApprovals(db, { limit: MAX_RUNNING })) {
    const problem = leftProblem(own, running)
    if (problem !== undefined) await interrupt(own.options, running, problem)
  }
}

/** Why nobody runs an approved operation any more; undefined if somebody does. */
function leftProblem(own: Own, running: Running): string | undefined {
  const { holder, machine } = own.options
  const isHere = running.machine === machine
  if (isHere && running.holder === holder) {
    const isRun = own.current === 'taking' || own.current === running.id
    return isRun ? undefined : 'its outcome could not be recorded'
  }
  const isDead = isHere && !isAlive(running.holder)
  return isDead || running.silent_ms > MAX_SILENT_MS ? GONE : undefined
}

/** Ends what a process has left, and what it had started. */
async function interrupt(
  { db, clock, log, machine }: ApprovalOptions,
  { id, holder, marker, action_id, open, ...left }: Running,
  outcome: string,
): Promise<void> {
  const isDead = left.machine === machine && !isAlive(holder)
  // Before the row ends: if this process dies in between, the next round must find them again.
  if (isDead && open && action_id !== null) await endMarked(operationMarker(marker, action_id))
  const isEnded = await db.transaction(async (tx) => {
    const approval = await q.interruptApproval(tx, { id, holder, outcome })
    if (approval === undefined) return false
    await tellProblem(tx, approval, 'critical', `${INTERRUPTED}: ${outcome}`, clock.now())
    return true
  })
  if (isEnded) log.warn('approved operation interrupted', { approval: id, cause: outcome })
}
