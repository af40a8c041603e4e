import Type from 'typebox'
import { addAction, countActions, finishAction, takeActionTurn } from '../../../db/ops/actions.ts'
import { addEvent } from '../../../db/ops/events.ts'
import { messageOf } from '../../../kernel/log.ts'
import { retryWhileUnavailable } from '../../../kernel/repeat.ts'
import { pause } from '../../../kernel/time.ts'
import { OUTPUT_BYTES, runCommand } from '../processes/run.ts'
import { runCheck } from '../checks/check.ts'
import { hardeningNote } from '../hardening.ts'
import { nameOf } from '../inventory/inventory.ts'
import type { Check, Operation, Service } from '../inventory/schema.ts'
import { operationMarker } from '../processes/markers.ts'
import { redactCut } from '../redact.ts'
import { commandText } from './programs.ts'
import { defineTool, done, refused, type ToolContext, type ToolResult } from './tool.ts'

const HOUR_S = 3_600
const TIMEOUT_S = 120
/** What was just started may take a while to answer. */
const VERIFY_MS = 15_000
const VERIFY_PAUSE_MS = 1_000
const RECORD_TRIES = 5
const RECORD_PAUSE_MS = 2_000
/** Any kind of action that has no cooldown of its own may be done as often as a restart. */
const RESTARTS = { count: 2, window_s: 4 * HOUR_S }
const REDEPLOYMENTS = { count: 1, window_s: 24 * HOUR_S }

/** How often an operation's kind of action may be done to a service within that many seconds. */
export function cooldownOf({ action_type, cooldown }: Operation): {
  readonly count: number
  readonly window_s: number
} {
  return cooldown ?? (action_type === 'redeployment' ? REDEPLOYMENTS : RESTARTS)
}

export const runOperationTool = defineTool({
  name: 'run_operation',
  description:
    'Runs an operation of a service, such as a restart, and then its check. Cooldowns limit how often.',
  tier: 3,
  takes: {
    service: Type.String({ minLength: 1, maxLength: 200 }),
    operation: Type.String({ minLength: 1, maxLength: 200 }),
    reason: Type.String({ minLength: 1, maxLength: 1_000, description: 'Why it is needed' }),
  },
  async run({ service: wanted, operation: named, reason }, context) {
    const { services } = await context.inventory.current()
    const service = services.find(({ name }) => name === wanted)
    if (service === undefined) return refused(`There is no service "${wanted}".`)
    const operation = service.operations?.find(({ name }) => name === named)
    if (operation === undefined) return refused(`Service "${wanted}" has no operation "${named}".`)
    const tier = operation.min_tier ?? 3
    if (context.job.session.tier < tier) {
      return refused(`Operation "${named}" is for tier ${tier}.`)
    }
    const turn = await admit(context, service, operation, reason)
    return 'refusal' in turn ? turn.refusal : runAdmitted(context, service, operation, turn.action)
  },
})

/**
 * Whether it may run now: dry-run and cooldown are looked at, and the action is counted, in one
 * transaction, in which no other operation of any instance is admitted.
 */
function admit(
  { db, clock, job: { session, signal }, dryRun, redact }: ToolContext,
  { name: service }: Service,
  operation: Operation,
  reason: string,
): Promise<{ readonly action: number } | { readonly refusal: ToolResult }> {
  const { name, action_type } = operation
  const { count: most, window_s } = cooldownOf(operation)
  return db.transaction(async (tx) => {
    await takeActionTurn(tx)
    if (signal.aborted) return { refusal: refused('It was not run: the session has ended.') }
    // After the wait: another instance may just have had its turn.
    const at = clock.now()
    const event = { session_id: session.id, service, created_at: at }
    if (await dryRun(tx)) {
      const message = `Dry run: would run ${name} (${commandText(operation.argv)}): ${reason}`
      await addEvent(tx, { ...event, level: 'info', message: redact(message) })
      return { refusal: done(`Dry run: ${name} was recorded and not run.`) }
    }
    const since = new Date(at.getTime() - window_s * 1_000)
    const count = await countActions(tx, service, action_type, since, at)
    if (count >= most) {
      const message = `${name} was not run: ${action_type} of ${service} was done ${count} times within ${window_s} s, ${most} at most`
      await addEvent(tx, { ...event, level: 'warning', message })
      return { refusal: refused(`Cooldown: ${message}.`) }
    }
    const what = { session_id: session.id, service, action_type, operation: name, at }
    await addEvent(tx, { ...event, level: 'info', message: `Runs ${name}: ${reason}` })
    return { action: await addAction(tx, what) }
  })
}

/** Runs what is admitted, then the check that tells whether it has helped. */
async function runAdmitted(
  { db, clock, log, redact, job }: ToolContext,
  service: Service,
  operation: Operation,
  action: number,
): Promise<ToolResult> {
  const { session, signal } = job
  const { name, argv, timeout_s = TIMEOUT_S } = operation
  const marker = operationMarker(job.marker, action)
  const options = { timeoutMs: timeout_s * 1_000, signal, marker, ownsMarker: true, leaves: true }
  const { code, output, problem } = await runCommand(argv, options)
  const note = code === 0 ? undefined : hardeningNote(output)
  const ran = [problem ?? `ended with ${code}`, note].filter((text) => text).join('; ')
  const tries = { tries: RECORD_TRIES, pauseMs: RECORD_PAUSE_MS }
  /** Never report failure because recording failed: the model would run the operation again. */
  async function record(outcome: string, level?: 'info' | 'warning'): Promise<void> {
    try {
      // An outage must not turn a good end into an open one.
      await retryWhileUnavailable({ clock, signal, ...tries })(() =>
        finishAction(db, action, outcome),
      )
      if (level === undefined) return
      const event = { session_id: session.id, service: service.name, created_at: clock.now() }
      await addEvent(db, { ...event, level, message: `${name}: ${outcome}` })
    } catch (error) {
      log.warn('outcome of an operation not recorded', {
        session: session.id,
        service: service.name,
        operation: name,
        outcome,
        error: redact(messageOf(error)),
      })
    }
  }
  const check =
    code === 0 ? service.checks.find((one) => nameOf(one) === operation.verify) : undefined
  // The check takes a while, and after a crash all is ended of what has no outcome.
  if (check !== undefined) await record(redact(ran))
  const checked = check && (await verify(check, { redact, job }))
  const good = code === 0 && checked?.ok !== false
  const outcome = redact(`${ran}${checked === undefined ? '' : `; ${checked.text}`}`)
  await record(outcome, good ? 'info' : 'warning')
  const cut = problem !== null || Buffer.byteLength(output) >= OUTPUT_BYTES
  const said = redactCut(output, cut, redact)
  return { ok: good, text: `${name}: ${outcome}\n${said}`.trim() }
}

async function verify(
  check: Check,
  { redact, job: { signal, marker } }: Pick<ToolContext, 'redact' | 'job'>,
): Promise<ToolResult> {
  const until = performance.now() + VERIFY_MS
  let result = await runCheck(check, { signal, marker, redact })
  while (!result.ok && !signal.aborted && performance.now() < until) {
    await pause(VERIFY_PAUSE_MS, signal)
    result = await runCheck(check, { signal, marker, redact })
  }
  const { ok, message } = result
  // Cut off, it says nothing of the service.
  if (!ok && signal.aborted) return { ok: true, text: 'not verified: the session has ended' }
  return { ok, text: `check ${nameOf(check)} ${ok ? 'is good' : 'fails'}: ${message}` }
}
