import { hash } from 'node:crypto'
import type { Executor } from '../../../db/client.ts'
import { checkQueries, type CheckState } from '../../../db/ops/checks.ts'
import { memoryQueries } from '../../../db/ops/memories.ts'
import { eventQueries } from '../../../db/ops/events.ts'
import { nameOf, runCheck, type CheckResult } from '../checks/run.ts'
import { addEvent } from '../events.ts'
import { FIRST_CONFIDENCE } from '../memories.ts'
import type { ToolOptions } from '../tools/tool.ts'
import type { Job, Outcome, Runner } from './runner.ts'

export type ProbeOptions = Pick<ToolOptions, 'db' | 'clock' | 'inventory' | 'redact'>

interface Checked extends CheckResult {
  readonly service: string
  readonly name: string
  readonly type: string
}

/** Characters of a check's name. */
const MAX_NAME = 200
/** Typical times are rounded up to these steps, so that similar times give the same memory. */
const STEPS_MS = [5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000]

/**
 * The runner without a model (decisions.md section 5): every check of the inventory at once, events
 * for what is wrong or has changed, memories of typical times. It never escalates.
 */
export function createProbe(options: ProbeOptions): Runner {
  return { name: 'probe', modelOf: () => 'none', run: (job) => probe(options, job) }
}

async function probe({ db, clock, inventory, redact }: ProbeOptions, job: Job): Promise<Outcome> {
  const { services } = await inventory.current()
  const { session, output, signal, marker } = job
  const checks = services.flatMap((service) =>
    service.checks.map((check) => ({ service: service.name, check })),
  )
  output.write('system', `${checks.length} checks of ${services.length} services\n`)
  const results = await Promise.all(
    checks.map(async ({ service, check }): Promise<Checked> => {
      const name = shortName(redact(nameOf(check)))
      const result = await runCheck(check, { signal, marker, redact })
      const word = result.ok ? 'ok  ' : 'FAIL'
      output.write('result', `${word} ${service}: ${name}: ${result.message} (${result.ms} ms)\n`)
      return { ...result, service, name, type: check.type }
    }),
  )
  const outcome: Outcome = {
    ...{ summary: null, problem: null, cost_usd: null, num_turns: null, exit_code: null },
  }
  if (signal.aborted) return outcome

  const now = clock.now()
  // In one transaction: nobody would ever be told of a recovery whose event is lost.
  await db.transaction((tx) => record(tx, results, session.id, now))
  for (const result of results) {
    if (result.ok && ['http', 'tcp', 'tls', 'dns'].includes(result.type)) {
      const { id, tier } = session
      await memoryQueries.noteCheckTime(db, { ...timing(result), session: id, tier, now })
    }
  }
  const summary = summaryOf(results)
  output.write('text', `${summary}\n`)
  return { ...outcome, summary }
}

/**
 * Stores the results, with events for what is wrong and for what is good again. People are notified
 * when a critical failure begins, and when it ends.
 */
async function record(
  tx: Executor,
  results: readonly Checked[],
  session: number,
  now: Date,
): Promise<void> {
  const states = results.map(({ service, name, ok }): CheckState => ({ service, name, ok }))
  const before = await checkQueries.saveCheckStates(tx, { states, now })
  for (const check of results) {
    const { service, name, ok, message, level } = check
    const last = before.find((state) => state.service === service && state.name === name)
    const told = last?.told_event ?? null
    const what = { session, service, now }
    if (!ok) {
      const begins = level === 'critical' && told === null
      const event = await addEvent(tx, { ...what, level, message: `${name}: ${message}` }, begins)
      if (begins) await checkQueries.saveNotifiedEvent(tx, { service, name, event: event.id })
    } else if (last?.ok === false) {
      const text = `${name} is good again: ${message}`
      await addEvent(tx, { ...what, level: 'info', message: text }, told !== null)
      if (told === null) continue
      await checkQueries.saveNotifiedEvent(tx, { service, name, event: null })
      // A receiver that was away must not be told of the beginning after the end.
      await eventQueries.withdrawNotice(tx, { event: told })
    }
  }
}

/**
 * A check without a name is named by what it checks, which may be too long for the database's
 * index.
 */
function shortName(name: string): string {
  if (name.length <= MAX_NAME) return name
  const rest = hash('sha256', name).slice(0, 16)
  return `${name.slice(0, MAX_NAME - rest.length - 1).toWellFormed()}…${rest}`
}

function timing({ service, name: check, ms }: Checked) {
  const step = STEPS_MS.find((most) => ms <= most)
  const time = step === undefined ? `takes over ${STEPS_MS.at(-1)} ms` : `answers within ${step} ms`
  const observation = `${check} usually ${time}`
  return { service, check, observation, confidence: FIRST_CONFIDENCE }
}

function summaryOf(results: readonly Checked[]): string {
  const failed = results.filter(({ ok }) => !ok)
  const services = new Set(results.map(({ service }) => service)).size
  if (failed.length === 0) return `All ${results.length} checks of ${services} services are good.`
  const list = failed.map(({ service, name, message }) => `${service}: ${name}: ${message}`)
  return `${failed.length} of ${results.length} checks failed: ${list.join('; ')}.`
}
