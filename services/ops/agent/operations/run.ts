import { operationQueries as q } from '../../../../db/ops/agent/operations.ts'
import { messageOf } from '../../../../kernel/log.ts'
import { runCommand } from '../../../../kernel/processes/run.ts'
import { retryWhileUnavailable } from '../../../../kernel/repeat.ts'
import { pause } from '../../../../kernel/time.ts'
import { hardeningNote } from '../../watch/checks/hardening.ts'
import { nameOf, type Check } from '../../watch/checks/run.ts'
import { runListed, saveResults, storedName } from '../../watch/checks/states.ts'
import { addEvent } from '../../events.ts'
import type { Operation, Service } from '../../watch/inventory/inventory.ts'
import { redactCut } from '../../redact.ts'
import { operationMarker } from '../sessions/leases.ts'
import { done, refused, type ToolContext, type ToolResult } from '../tools/tool.ts'

/** What runs an operation: a session, or an instance after a person's approval. */
export interface OperationContext extends Omit<ToolContext, 'job' | 'sandbox' | 'runbooks'> {
  job: { session: { id: number | null }; marker: string; signal: AbortSignal }
}

const DEFAULT_TIMEOUT_S = 120
/** A service that was just started may need this long until its check passes. */
const VERIFY_MS = 15_000
const VERIFY_PAUSE_MS = 1_000
const FINISH_TRIES = { tries: 5, pauseMs: 2_000 }

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
