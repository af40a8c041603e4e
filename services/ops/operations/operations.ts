import Type from 'typebox'
import type { Executor } from '../../../db/client.ts'
import type { Approval } from '../../../db/ops/approvals.ts'
import { operationQueries as q } from '../../../db/ops/operations.ts'
import { messageOf } from '../../../kernel/log.ts'
import { retryWhileUnavailable } from '../../../kernel/repeat.ts'
import { pause } from '../../../kernel/time.ts'
import { noteChange } from '../../audit.ts'
import { runListed, saveResults, storedName } from '../checks/states.ts'
import { nameOf, type Check } from '../checks/run.ts'
import { askApproval, nameOfApproval } from '../approvals/approvals.ts'
import { addEvent } from '../events.ts'
import { hardeningNote } from '../checks/hardening.ts'
import type { Operation, Service } from '../inventory/inventory.ts'
import { runCommand } from '../../../kernel/processes/run.ts'
import { redactCut } from '../redact.ts'
import { operationMarker } from '../sessions/leases.ts'
import { commandText } from '../tools/programs.ts'
import {
  defineTool,
  done,
  refused,
  Text,
  type ToolContext,
  type ToolResult,
} from '../tools/tool.ts'

/** How often a type of action may be done to a service. */
type Cooldown = NonNullable<Operation['cooldown']>

const HOUR_S = 3_600
const DEFAULT_TIMEOUT_S = 120
/** A service that was just started may need this long until its check passes. */
const VERIFY_MS = 15_000
const VERIFY_PAUSE_MS = 1_000
const SESSION_ENDED = 'It was not run: the session has ended.'
const FINISH_TRIES = { tries: 5, pauseMs: 2_000 }
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
    'Cooldowns limit how often.',
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

/** What runs an operation: a session, or an instance after a person's approval. */
export interface OperationContext extends Omit<ToolContext, 'job' | 'sandbox'> {
  job: { session: { id: number | null }; marker: string; signal: AbortSignal }
}

/**
 * Checks dry run and cooldown, and counts the action if this process still runs the session. It is
 * one transaction: no other instance admits an operation meanwhile. Gives the id of the action, or
 * a refusal.
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
      return waitsFor(await askApproval(tx, request, redact))
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

/** What the model is told of an operation that a person must approve, or has approved. */
function waitsFor(approval: Approval): ToolResult {
  const { id, status, expires_at } = approval
  const name = nameOfApproval(approval)
  if (status !== 'pending')
    return done(`${name} was approved, and its server runs it: approval ${id}.`)
  return done(
    `${name} is not run yet: approval ${id} waits for a person until ${expires_at.toISOString()}, ` +
      'so do not call it again, and say in the summary that it waits.',
  )
}

/** Runs an admitted operation, then the check that verifies its effect. */
export async function runAdmitted(
  context: OperationContext,
  service: Service,
  operation: Operation,
  action: number,
): Promise<{ ok: boolean; outcome: string; output: string }> {
  const { redact, job } = context
  const record = recorderOf(context, action, service, operation)
  const { argv, timeout_s = DEFAULT_TIMEOUT_S } = operation
  const marker = operationMarker(job.marker, action)
  const marked = { marker, ownsMarker: true, leaves: true }
  const options = { ...marked, signal: job.signal, timeoutMs: timeout_s * 1_000 }
  const { code, output, isCut, problem } = await runCommand(argv, options)
  const note = code === 0 ? undefined : hardeningNote(output)
  const ending = [problem ?? `ended with ${code}`, note].filter(Boolean).join('; ')
  const checks = code === 0 ? service.checks : []
  const check = checks.find((one) => nameOf(one) === operation.verify)
  // The check takes a while, and a crash meanwhile would end what an operation without outcome
  // left.
  if (check !== undefined) await record(redact(ending))
  const verified = check && (await verify(service, check, context))
  const ok = code === 0 && verified?.ok !== false
  const outcome = redact(verified === undefined ? ending : `${ending}; ${verified.text}`)
  await record(outcome, ok ? 'info' : 'warning')
  return { ok, outcome, output: redactCut(output, isCut, redact) }
}

/**
 * Writes the outcome of an action, with an event of a level. It never rejects: told that recording
 * failed, the model would run the operation again.
 */
function recorderOf(
  { db, clock, log, redact, job }: OperationContext,
  action: number,
  { name: service }: Service,
  { name: operation }: Operation,
) {
  const session = job.session.id
  return async (outcome: string, level?: 'info' | 'warning'): Promise<void> => {
    try {
      // An outage must not leave an action without an outcome: that counts as interrupted.
      const retry = retryWhileUnavailable({ signal: job.signal, ...FINISH_TRIES })
      await retry(() => q.finishAction(db, { id: action, outcome }))
      if (level === undefined) return
      const message = `${operation}: ${outcome}`
      await addEvent(db, { session, service, level, message, now: clock.now() })
    } catch (error) {
      log.warn('outcome of an operation not recorded', {
        session,
        service,
        operation,
        outcome,
        error: redact(messageOf(error)),
      })
    }
  }
}

const VERIFIED = { ok: 'is good', warn: 'fails', fail: 'fails', unknown: 'is unknown' } as const

/** Repeats a check until it passes or time is up, and records how it ended. */
async function verify(
  service: Service,
  check: Check,
  context: OperationContext,
): Promise<ToolResult> {
  const { redact, job, log } = context
  const { signal } = job
  const listed = { service: service.name, name: storedName(check, redact), check }
  const until = performance.now() + VERIFY_MS
  for (;;) {
    const result = await runListed(context, listed, job)
    const { state, message } = result
    const ok = state === 'ok'
    // An interrupted check says nothing about the service.
    if (!ok && signal.aborted) return done('not verified: the session has ended')
    if (!ok && performance.now() < until) {
      await pause(VERIFY_PAUSE_MS, signal)
      continue
    }
    // The operation has run, whatever becomes of this.
    await saveResults(context, [{ ...result, ...listed }]).catch((error: unknown) => {
      log.warn('result of a check not recorded', { error: redact(messageOf(error)) })
    })
    const text = `check ${nameOf(check)} ${VERIFIED[state]}: ${message}`
    return ok ? done(text) : refused(text)
  }
}
