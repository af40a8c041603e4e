import type { Transaction } from '../../../../db/client.ts'
import { approvalQueries as q, type Claimed } from '../../../../db/ops/agent/approvals.ts'
import { operationQueries } from '../../../../db/ops/agent/operations.ts'
import { addEvent } from '../../events.ts'
import type { Operation, Service } from '../../watch/inventory/inventory.ts'
import { cooldownProblem } from '../operations/operations.ts'
import type { OperationContext } from '../operations/run.ts'
import { holdPause, pauseProblem } from '../pause.ts'
import type { LeaseOptions } from '../sessions/leases.ts'
import { hasCommandOf, tellProblem } from './approvals.ts'

/** What approved operations are run with. */
export interface ApprovalOptions
  extends Omit<OperationContext, 'job'>, Pick<LeaseOptions, 'holder' | 'machine'> {
  /** The highest tier that sessions may have now. */
  maxTier: () => number
}

/** An operation that this process has taken. */
export interface Taken {
  approval: Claimed
  service: Service
  operation: Operation
  action: number
}

/** The tier that operations need. */
const OPERATING_TIER = 3

/**
 * Takes an approved operation for this process, unless it may not run any more. It is one
 * transaction: two processes never take the same one, and no cooldown is exceeded.
 */
export async function take(
  tx: Transaction,
  options: ApprovalOptions,
  services: readonly Service[],
): Promise<Taken | 'refused' | undefined> {
  const { clock, holder, machine } = options
  await operationQueries.lockAdmission(tx, {})
  const approval = await q.claimApproval(tx, { holder, machine })
  if (approval === undefined) return undefined
  // Read the clock after waiting for the lock: another instance may just have counted an action.
  const now = clock.now()
  const allowed = await findAllowed(tx, options, approval, services, now)
  if (typeof allowed === 'string') {
    await q.endApproval(tx, { id: approval.id, status: 'refused', outcome: allowed })
    await tellProblem(tx, approval, 'warning', `was not run: ${allowed}`, now)
    return 'refused'
  }
  const { service, operation } = allowed
  const { session_id: session, decided_by } = approval
  const { name, action_type } = operation
  const event = { session, service: service.name, now }
  const { id: action } = await operationQueries.addApprovedAction(tx, {
    ...event,
    action_type,
    operation: name,
  })
  await q.setApprovalAction(tx, { id: approval.id, action })
  const message = `Runs ${name}: approved by ${decided_by}`
  await addEvent(tx, { ...event, level: 'info', message })
  return { approval, service, operation, action }
}

/** The operation as the inventory has it now, or why it must not run. */
async function findAllowed(
  tx: Transaction,
  { redact, dryRun, maxTier }: ApprovalOptions,
  approval: Claimed,
  services: readonly Service[],
  now: Date,
): Promise<Pick<Taken, 'service' | 'operation'> | string> {
  const service = services.find(({ name }) => name === approval.service)
  const operation = service?.operations?.find(({ name }) => name === approval.operation)
  if (service === undefined || operation === undefined) return 'the inventory has it no more'
  const isSame = hasCommandOf(approval, operation, redact)
  if (!isSame) return 'the inventory has another command for it now'
  if (maxTier() < OPERATING_TIER) return `tier ${OPERATING_TIER} is not allowed any more`
  const paused = pauseProblem(await holdPause(tx), 'repairs')
  if (paused !== undefined) return paused
  if (await dryRun(tx)) return 'dry run: nothing runs'
  const spent = await cooldownProblem(tx, service.name, operation, now)
  return spent === undefined ? { service, operation } : `cooldown: ${spent}`
}
