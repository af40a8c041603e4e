import * as Type from '../../../../kernel/schema.ts'
import type { Executor } from '../../../../db/client.ts'
import { operationQueries as q } from '../../../../db/ops/agent/operations.ts'
import { noteChange } from '../../../audit.ts'
import { askApproval, waitsText } from '../approvals/approvals.ts'
import { addEvent } from '../../events.ts'
import { holdPause, pauseProblem } from '../pause.ts'
import type { Operation, Service } from '../../watch/inventory/inventory.ts'
import { commandText } from '../tools/programs.ts'
import { defineTool, done, refused, Text, type ToolContext } from '../tools/tool.ts'
import { runAdmitted } from './run.ts'

/** How often a type of action may be done to a service. */
type Cooldown = NonNullable<Operation['cooldown']>

const HOUR_S = 3_600
const SESSION_ENDED = 'It was not run: the session has ended.'
/** Also for action types that have no cooldown of their own. */
const RESTARTS = { count: 2, window_s: 4 * HOUR_S }
const REDEPLOYMENTS = { count: 1, window_s: 24 * HOUR_S }
const Name = Type.String({ minLength: 1, maxLength: 200 })

export function cooldownOf({ action_type, cooldown }: Operation): Cooldown {
  return cooldown ?? (action_type === 'redeployment' ? REDEPLOYMENTS : RESTARTS)
}

export const runOperationTool = defineTool({
  name: 'run_operation',
  description:
    'Runs an operation of a service, such as a restart, and then its check. ' +
    'Cooldowns limit how often. Some wait for the approval of a person.',
  tier: 3,
  effect: 'acts',
  takes: {
    service: Name,
    operation: Name,
    reason: Text(1_000, 'Why it is needed'),
  },
  async run({ service: wanted, operation: named, reason }, context) {
    const { services } = await context.inventory.current()
    const service = services.find(({ name }) => name === wanted)
    if (service === undefined) return refused(`There is no service "${wanted}".`)
    const operation = service.operations?.find(({ name }) => name === named)
    if (operation === undefined) return refused(`Service "${wanted}" has no operation "${named}".`)
    const admission = await admit(context, service, operation, reason)
    if (!('action' in admission)) return admission
    const { ok, outcome, output } = await runAdmitted(
      context,
      service,
      operation,
      admission.action,
    )
    return { ok, text: `${named}: ${outcome}\n${output}`.trim() }
  },
})

/**
 * Checks pause, dry run and cooldown, and counts the action if this process still runs the
 * session. It is one transaction: no other instance admits an operation meanwhile. Gives the id of
 * the action, or a refusal.
 */
function admit(
  { db, clock, job: { session, holder, signal }, dryRun, redact }: ToolContext,
  { name: service }: Service,
  operation: Operation,
  reason: string,
) {
  const { name, action_type } = operation
  return db.transaction(async (tx) => {
    await q.lockAdmission(tx, {})
    if (signal.aborted) return refused(SESSION_ENDED)
    // Read the clock after waiting for the lock: another instance may just have counted an action.
    const now = clock.now()
    const event = { session: session.id, service, now }
    const paused = pauseProblem(await holdPause(tx), 'repairs')
    if (paused !== undefined) {
      const message = `${name} was not run: ${paused}`
      await addEvent(tx, { ...event, level: 'warning', message })
      return refused(`Paused: ${message}.`)
    }
    if (await dryRun(tx)) {
      const message = `Dry run: would run ${name} (${commandText(operation.argv)}): ${reason}`
      await addEvent(tx, { ...event, level: 'info', message: redact(message) })
      return done(`Dry run: ${name} was recorded and not run.`)
    }
    const spent = await cooldownProblem(tx, service, operation, now)
    if (spent !== undefined) {
      const message = `${name} was not run: ${spent}`
      await addEvent(tx, { ...event, level: 'warning', message })
      return refused(`Cooldown: ${message}.`)
    }
    if (operation.approval === true) {
      const command = commandText(operation.argv)
      const request = { session: session.id, service, operation, command, reason, now }
      return done(waitsText(await askApproval(tx, request, redact)))
    }
    const asked = { session: session.id, holder, service, action_type, operation: name, now }
    const action = await q.addAction(tx, asked)
    // Another instance may have ended the session, or been asked to stop it.
    if (action === undefined) return refused(SESSION_ENDED)
    await addEvent(tx, { ...event, level: 'info', message: `Runs ${name}: ${reason}` })
    await noteChange(
      tx,
      { kind: 'session', id: session.id },
      { service: 'ops', action: 'operation run', subject: `${name} of ${service}` },
    )
    return { action: action.id }
  })
}

/** Why an operation may not run for now; undefined if it may. Call it with the lock of admission. */
export async function cooldownProblem(
  tx: Executor,
  service: string,
  operation: Operation,
  now: Date,
): Promise<string | undefined> {
  const { action_type } = operation
  const { count: most, window_s } = cooldownOf(operation)
  // The upper bound ignores actions in the future, of before the clock was set back.
  const since = new Date(now.getTime() - window_s * 1_000)
  const { count } = await q.countActions(tx, { service, action_type, since, until: now })
  if (count >= most) {
    const times = `${count} times within ${window_s} s, ${most} at most`
    return `${action_type} of ${service} was done ${times}`
  }
  return undefined
}
