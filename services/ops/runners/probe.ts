import { memoryQueries } from '../../../db/ops/memories.ts'
import { recordResults, storedName } from '../checks/results.ts'
import { runCheck, type Check } from '../checks/run.ts'
import { FIRST_CONFIDENCE } from '../memories.ts'
import type { ToolOptions } from '../tools/tool.ts'
import { NO_OUTCOME, type Job, type Outcome, type Runner } from './runner.ts'

export type ProbeOptions = Pick<ToolOptions, 'db' | 'clock' | 'inventory' | 'redact'>

type Checked = Awaited<ReturnType<typeof look>>

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
  await db.transaction((tx) => recordResults(tx, results, { session: id, now, always: true }))
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
  const name = storedName(check, redact)
  const result = await runCheck(check, { signal, marker, redact })
  const { ok, message, ms } = result
  const word = ok ? 'ok  ' : 'FAIL'
  output.write('result', `${word} ${service}: ${name}: ${message} (${ms} ms)\n`)
  return { ...result, service, name, type: check.type }
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
