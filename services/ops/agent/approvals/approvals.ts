import * as Type from '../../../../kernel/schema.ts'
import type { Executor } from '../../../../db/client.ts'
import { approvalQueries as q, type Approval } from '../../../../db/ops/agent/approvals.ts'
import { actorText } from '../../../../kernel/actor.ts'
import { Fault, found } from '../../../../kernel/fault.ts'
import { noteChange, type ChangeTools } from '../../../audit.ts'
import { addEvent } from '../../events.ts'
import type { Operation } from '../../watch/inventory/inventory.ts'
import { beginNotice, endNotice } from '../../notices.ts'
import type { Redact } from '../../redact.ts'

/** What a person makes of an approval. */
export const Decision = Type.Object(
  { decision: Type.Enum(['approve', 'reject'], { type: 'string' }) },
  { additionalProperties: false },
)
export type Decision = Type.Static<typeof Decision>['decision']

/** An operation that a session asks for. */
interface ApprovalRequest {
  session: number
  service: string
  operation: Operation
  /** The command for people. */
  command: string
  reason: string
  now: Date
}

/** Taken from the list at once; the rest is taken in the next round. */
const MAX_EXPIRED = 100
const STATUSES = { approve: 'approved', reject: 'rejected' } as const

/** The arguments of an operation as an approval keeps and compares them. */
function shownArgv({ argv }: Operation, redact: Redact): readonly string[] {
  return argv.map((word) => redact(word))
}

/** Whether an approval shows the command that the operation has. */
export function hasCommandOf({ argv }: Approval, operation: Operation, redact: Redact): boolean {
  return JSON.stringify(argv) === JSON.stringify(shownArgv(operation, redact))
}

export function nameOfApproval({ service, operation }: Approval): string {
  return `${operation} of ${service}`
}

/** What a model is told of an operation that a person must approve, or has approved. */
export function waitsText(approval: Approval): string {
  const { id, status, expires_at } = approval
  const name = nameOfApproval(approval)
  if (status !== 'pending') return `${name} was approved, and a server runs it: approval ${id}.`
  return (
    `${name} is not run yet: approval ${id} waits for a person until ${expires_at.toISOString()}, ` +
    'so do not call it again, and say in the summary that it waits.'
  )
}

/**
 * Asks people for an operation, or joins the approval that is open. Gives it. Call it with the lock
 * of admission.
 */
export async function askApproval(
  tx: Executor,
  { session, service, operation, command, reason, now }: ApprovalRequest,
  redact: Redact,
): Promise<Approval> {
  await expireApprovals(tx, now)
  const open = await q.findOpenApproval(tx, { service, operation: operation.name })
  const joined =
    open !== undefined && (open.status !== 'pending' || hasCommandOf(open, operation, redact))
  if (joined) return open
  if (open !== undefined) {
    const outcome = 'the inventory has another command for it by now'
    await q.endApproval(tx, { id: open.id, status: 'refused', outcome })
    await tellEnd(tx, open, `was not decided: ${outcome}`, now)
  }
  const argv = shownArgv(operation, redact)
  const asked = { session, service, operation: operation.name, argv, reason: redact(reason) }
  const approval = await q.addApproval(tx, asked)
  const { id, expires_at } = approval
  const until = `until ${expires_at.toISOString()}`
  const message =
    `${nameOfApproval(approval)} waits for a person's approval ${until}. ` +
    `It would run ${command}. Decide on the page /approvals, or by gatehouse approve ${id}. ` +
    `Reason: ${reason}`
  const event = { session, service, level: 'warning', message: redact(message), now } as const
  await beginNotice(tx, event, keyOf(approval), { path: '/approvals' })
  const subject = nameOfApproval(approval)
  const note = { service: 'ops', action: 'approval ask', subject } as const
  await noteChange(tx, { kind: 'session', id: session }, note)
  return approval
}

/**
 * Approves or rejects an operation that waits. An instance runs what is approved. Throws 404, and
 * 409 for one that was decided or whose time is over.
 */
export function decideApproval(
  { db, actor }: ChangeTools,
  id: number,
  decision: Decision,
  now: Date,
): Promise<Approval> {
  return db.transaction(async (tx) => {
    const by = actorText(actor)
    const status = STATUSES[decision]
    const decided = await q.decideApproval(tx, { id, status, by })
    if (decided === undefined) {
      throw alreadyOver(found(await q.findApproval(tx, { id }), 'approval'))
    }
    await tellEnd(tx, decided, `was ${status} by ${by}`, now)
    const subject = nameOfApproval(decided)
    await noteChange(tx, actor, { service: 'ops', action: `approval ${decision}`, subject })
    return decided
  })
}

function alreadyOver({ id, status, decided_by }: Approval): Fault {
  // Its time is over, and the next round will say so.
  const state = status === 'pending' ? 'expired' : status
  const decision = decided_by === null ? '' : `was decided by ${decided_by}, and `
  return new Fault(409, 'CONFLICT', `approval ${id} ${decision}is ${state}`)
}

/** Ends what nobody has decided, or no instance has run, in time. */
export async function expireApprovals(tx: Executor, now: Date): Promise<void> {
  for (const approval of await q.expireApprovals(tx, { limit: MAX_EXPIRED })) {
    const what = `is expired: ${approval.outcome}`
    if (approval.decided_at === null) await tellEnd(tx, approval, what, now)
    // Who approved it believes that it runs.
    else await tellProblem(tx, approval, 'warning', what, now)
  }
}

/** Records that an approval does not wait any more. Operators are notified once. */
async function tellEnd(tx: Executor, approval: Approval, what: string, now: Date): Promise<void> {
  const { session_id: session, service } = approval
  const message = `${titleOf(approval)} ${what}`
  await endNotice(tx, { session, service, level: 'info', message, now }, keyOf(approval))
}

/** Records that what was approved did not go well: operators are notified, and it waits for one. */
export async function tellProblem(
  tx: Executor,
  approval: Approval,
  level: 'warning' | 'critical',
  what: string,
  now: Date,
): Promise<void> {
  const { session_id: session, service } = approval
  const event = { session, service, level, message: `${titleOf(approval)} ${what}`, now }
  await addEvent(tx, event, { notify: true, waits: true })
}

function titleOf(approval: Approval): string {
  return `Approval ${approval.id} (${nameOfApproval(approval)})`
}

/** The key of the notice that an operation waits. */
function keyOf({ id }: Approval): string {
  return `approval ${id}`
}
