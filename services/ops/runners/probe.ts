import { memoryQueries } from '../../../db/ops/memories.ts'
import { recordResults, STATE_WORDS, storedName, type Change } from '../checks/results.ts'
import { runCheck, type Check } from '../checks/run.ts'
import type { Service } from '../inventory/inventory.ts'
import { FIRST_CONFIDENCE } from '../memories.ts'
import type { ToolOptions } from '../tools/tool.ts'
import { NO_OUTCOME, type Job, type Outcome, type Runner } from './runner.ts'

export type ProbeOptions = Pick<ToolOptions, 'db' | 'clock' | 'inventory' | 'redact'>

type Checked = Awaited<ReturnType<typeof look>>

/** Types of checks whose time is remembered. */
const TIMED = ['http', 'tcp', 'tls', 'dns']
/** Typical times are rounded up to these steps, so that similar times give the same memory. */
const STEPS_MS = [5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000]
/** Checks or services that a sentence of the summary names. */
const MAX_NAMED = 20

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
  const occasion = { session: id, now, always: true }
  // In one transaction: a recovery whose event is lost would never be notified.
  const changes = await db.transaction((tx) => recordResults(tx, results, occasion))
  const about = { session: id, tier, now }
  for (const result of results) {
    if (result.state !== 'ok' || !TIMED.includes(result.type)) continue
    await memoryQueries.noteCheckTime(db, { ...timing(result), ...about })
  }
  const summary = summaryOf(services, results, changes)
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
  const { state, message, ms } = result
  const word = STATE_WORDS[state].padEnd(STATE_WORDS.unknown.length)
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

const NOT_OK = ['fail', 'warn', 'unknown'] as const
const FOUND = { fail: 'failed', warn: 'warned', unknown: 'could not look' } as const

/** States and what has changed. It says that all is good only if each check has run. */
function summaryOf(
  services: readonly Service[],
  results: readonly Checked[],
  changes: readonly Change[],
): string {
  const all = results.length
  const isGood = all > 0 && results.every(({ state }) => state === 'ok')
  const checked = new Set(results.map(({ service }) => service)).size
  const bare = services.filter(({ checks }) => checks.length === 0).map(({ name }) => name)
  const changed = changes.map(({ service, name, from, to }) => {
    return `${service}: ${name}: ${STATE_WORDS[from]} → ${STATE_WORDS[to]}`
  })
  const sentences = [
    services.length === 0 && 'Nothing was checked: the inventory has no services.',
    isGood && `All ${all} checks of ${checked} services are good.`,
    ...NOT_OK.map((state) => {
      const found = results.filter((result) => result.state === state)
      const list = found.map(({ service, name, message }) => `${service}: ${name}: ${message}`)
      return list.length > 0 && `${list.length} of ${all} checks ${FOUND[state]}: ${named(list)}.`
    }),
    bare.length > 0 && `Without checks, so nothing is known of them: ${named(bare)}.`,
    changed.length > 0 && `Changed: ${named(changed)}.`,
  ]
  return sentences.filter(Boolean).join(' ')
}

/** The beginning of a list. */
function named(list: readonly string[]): string {
  const more = list.length - MAX_NAMED
  return `${list.slice(0, MAX_NAMED).join('; ')}${more > 0 ? ` and ${more} more` : ''}`
}
