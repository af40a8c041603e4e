import { hash } from 'node:crypto'
import type { Executor } from '../../../db/client.ts'
import { checkQueries as q } from '../../../db/ops/checks.ts'
import { memoryQueries } from '../../../db/ops/memories.ts'
import { eventQueries } from '../../../db/ops/events.ts'
import { nameOf, runCheck, type Check } from '../checks/run.ts'
import { addEvent } from '../events.ts'
import { FIRST_CONFIDENCE } from '../memories.ts'
import type { ToolOptions } from '../tools/tool.ts'
import { NO_OUTCOME, type Job, type Outcome, type Runner } from './runner.ts'

export type ProbeOptions = Pick<ToolOptions, 'db' | 'clock' | 'inventory' | 'redact'>

type Checked = Awaited<ReturnType<typeof look>>

/** Characters of a check's name. */
const MAX_NAME = 200
/** Types of checks whose time is remembered. */
const TIMED = ['http', 'tcp', 'tls', 'dns']
/** Typical times are rounded up to these steps, so that similar times give the same memory. */
const STEPS_MS = [5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000]

/**
 * The runner without a model (decisions.md section 5): every check of the inventory at once,
 * events for what is wrong or has changed, memories of typical times. It never escalates.
 */
export function createProbe(options: ProbeOptions): Runner {
  return { modelOf: () => 'none', run: (job) => probe(options, job) }
}

async function probe(options: ProbeOptions, job: Job): Promise<Outcome> {
  const { db, clock, inventory } = options
  const { services } = await inventory.current()
  const { session, output, signal } = job
  const { length } = services.flatMap(({ checks }) => checks)
  output.write('system', `${length} checks of ${services.length} services\n`)
  const looks = services.flatMap(({ name, checks }) =>
    checks.map((check) => look(options, job, name, check)),
  )
  const results = await Promise.all(looks)
  if (signal.aborted) return NO_OUTCOME

  const now = clock.now()
  const { id, tier } = session
  // In one transaction: nobody would ever be told of a recovery whose event is lost.
  await db.transaction((tx) => record(tx, results, id, now))
  const about = { session: id, tier, now }
  for (const result of results) {
    if (!result.ok || !TIMED.includes(result.type)) continue
    await memoryQueries.noteCheckTime(db, { ...timing(result), ...about })
  }
  const summary = summaryOf(results)
  output.write('text', `${summary}\n`)
  return { ...NO_OUTCOME, summary }
}

/** Runs a check of a service, and puts out what it found. */
async function look(
  { redact }: ProbeOptions,
  { output, signal, marker }: Job,
  service: string,
  check: Check,
) {
  const name = shortName(redact(nameOf(check)))
  const result = await runCheck(check, { signal, marker, redact })
  const { ok, message, ms } = result
  const word = ok ? 'ok  ' : 'FAIL'
  output.write('result', `${word} ${service}: ${name}: ${message} (${ms} ms)\n`)
  return { ...result, service, name, type: check.type }
}

/**
 * Stores the results, with events for what is wrong and for what is good again. People are
 * notified when a critical failure begins, and when it ends.
 */
async function record(
  tx: Executor,
  results: readonly Checked[],
  session: number,
  now: Date,
): Promise<void> {
  const states = results.map(({ service, name, ok }) => ({ service, name, ok }))
  const before = await q.saveCheckStates(tx, { states, now })
  for (const check of results) {
    const { service, name, ok, message, level } = check
    const last = before.find((state) => state.service === service && state.name === name)
    const told = last?.told_event ?? null
    const what = { session, service, now }
    if (!ok) {
      const begins = level === 'critical' && told === null
      const event = { ...what, level, message: `${name}: ${message}` }
      const { id } = await addEvent(tx, event, begins)
      if (begins) await q.saveNotifiedEvent(tx, { service, name, event: id })
    }
    if (ok && last?.ok === false) {
      const text = `${name} is good again: ${message}`
      await addEvent(tx, { ...what, level: 'info', message: text }, told !== null)
      if (told === null) continue
      await q.saveNotifiedEvent(tx, { service, name, event: null })
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
  const start = name.slice(0, MAX_NAME - rest.length - 1)
  return `${start.toWellFormed()}…${rest}`
}

function timing({ service, name: check, ms }: Checked) {
  const step = STEPS_MS.find((most) => ms <= most)
  const slow = `takes over ${STEPS_MS.at(-1)} ms`
  const time = step === undefined ? slow : `answers within ${step} ms`
  const observation = `${check} usually ${time}`
  return { service, check, observation, confidence: FIRST_CONFIDENCE }
}

function summaryOf(results: readonly Checked[]): string {
  const all = results.length
  const failed = results.filter(({ ok }) => !ok)
  const services = new Set(results.map(({ service }) => service)).size
  if (failed.length === 0) return `All ${all} checks of ${services} services are good.`
  const list = failed.map(({ service, name, message }) => `${service}: ${name}: ${message}`)
  return `${failed.length} of ${all} checks failed: ${list.join('; ')}.`
}
