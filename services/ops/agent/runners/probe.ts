import { checkQueries, type Change, type CheckState } from '../../../../db/ops/watch/checks.ts'
import { memoryQueries } from '../../../../db/ops/agent/memories.ts'
import { sessionQueries } from '../../../../db/ops/agent/sessions.ts'
import { isFresh, MAX_STATES } from '../../watch/checks/health.ts'
import { runSideBySide } from '../../watch/checks/slots.ts'
import {
  listChecks,
  runListed,
  saveResults,
  STATE_WORDS,
  type ListedCheck,
} from '../../watch/checks/states.ts'
import type { Service } from '../../watch/inventory/inventory.ts'
import { FIRST_CONFIDENCE } from '../memories.ts'
import type { ToolOptions } from '../tools/tool.ts'
import { NO_OUTCOME, type Job, type Outcome, type Runner } from './runner.ts'

export type ProbeOptions = Pick<ToolOptions, 'db' | 'clock' | 'inventory' | 'redact'>

/** A check with its state, which was read, or found by this session. */
interface Checked extends Pick<CheckState, 'service' | 'name' | 'type' | 'state' | 'message'> {
  ms: number
}

/** Types of checks whose time is remembered. */
const TIMED = ['http', 'tcp', 'tls', 'dns']
/** Typical times are rounded up to these steps, so that similar times give the same memory. */
const STEPS_MS = [5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000]
/** Checks or services that a sentence of the summary names. */
const MAX_NAMED = 20
const MAX_CHANGES = 1_000

/**
 * The runner without a model (decisions.md sections 5 and 7): it reports the state of every check
 * of the inventory, and what has changed since the session before; memories of typical times. It
 * runs the checks whose state is old, and all in a session that was asked for. It never escalates.
 */
export function createProbe(options: ProbeOptions): Runner {
  return { modelOf: () => 'none', run: (job) => probe(options, job) }
}

async function probe(options: ProbeOptions, job: Job): Promise<Outcome> {
  const { db, clock, inventory } = options
  const { services } = await inventory.current()
  const { session, output, signal } = job
  const listed = await listChecks(options)
  output.write('system', `${listed.length} checks of ${services.length} services\n`)
  const states = await checkQueries.listChecks(db, {
    id: null,
    now: clock.now(),
    limit: MAX_STATES,
  })
  // An alert says that something is wrong now, and so may a person who starts a session.
  const isAsked = session.trigger !== 'scheduled'
  const now = clock.now()
  const parts = listed.map((one) => {
    const known = states.find(({ service, name }) => service === one.service && name === one.name)
    return { one, known: isAsked || !known || !isFresh(known, now) ? undefined : known }
  })
  const read = parts.flatMap(({ known }) =>
    known === undefined ? [] : [reported(job, known, now)],
  )
  const stale = parts.flatMap(({ one, known }) => (known === undefined ? [one] : []))
  const ran = await runSideBySide(stale, (one) => run(options, job, one))
  if (signal.aborted) return NO_OUTCOME

  await saveResults({ ...options, job }, ran)
  const results = [...read, ...ran]
  await rememberTimes(options, job, results)
  const summary = summaryOf(services, results, await changesSince(options, session.id))
  output.write('text', `${summary}\n`)
  return { ...NO_OUTCOME, summary }
}

/** Puts out a state that the rounds of checks have found. */
function reported({ output }: Job, known: CheckState, now: Date): Checked {
  const { service, name, state, message, ms, checked_at } = known
  const ago = Math.round((now.getTime() - (checked_at ?? now).getTime()) / 1_000)
  output.write(
    'result',
    `${wordOf(state)} ${service}: ${name}: ${message} (${ms} ms, ${ago} s ago)\n`,
  )
  return known
}

/** Runs a check, and puts out what it found. */
async function run(options: ProbeOptions, job: Job, listed: ListedCheck) {
  const { service, name, check } = listed
  const result = await runListed(options, listed, job)
  const { state, message, ms } = result
  job.output.write('result', `${wordOf(state)} ${service}: ${name}: ${message} (${ms} ms)\n`)
  return { ...result, service, name, type: check.type }
}

function wordOf(state: Checked['state']): string {
  return STATE_WORDS[state].padEnd(STATE_WORDS.unknown.length)
}

/** What has another state than at the end of the session before; nothing for the first one. */
async function changesSince({ db }: ProbeOptions, session: number): Promise<readonly Change[]> {
  const all = { status: null, trigger: null }
  const newest = await sessionQueries.listSessions(db, { ...all, offset: 0, limit: 2 })
  const since = newest.find(({ id }) => id !== session)?.ended_at
  if (since === null || since === undefined) return []
  return checkQueries.listChanges(db, { since, limit: MAX_CHANGES })
}

async function rememberTimes(
  { db, clock }: ProbeOptions,
  { session: { id, tier } }: Job,
  results: readonly Checked[],
): Promise<void> {
  const about = { session: id, tier, now: clock.now() }
  for (const result of results) {
    if (result.state !== 'ok' || !TIMED.includes(result.type)) continue
    await memoryQueries.noteCheckTime(db, { ...timing(result), ...about })
  }
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
  const changed = changes.map(({ service, name, before, state }) => {
    return `${service}: ${name}: ${STATE_WORDS[before]} → ${STATE_WORDS[state]}`
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
