import { mkdir, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { messageOf } from '../../../kernel/log.ts'
import { callTool } from '../tools/toolbox.ts'
import { readBriefing, SUMMARY_LONGEST, type AgentOptions } from './briefing.ts'
import { agentCommand } from './cli-agents.ts'
import { runAgentProcess, type ProcessEnd } from './cli-process.ts'
import { agentPrompt } from './cli-prompt.ts'
import { createReading, type Told } from './cli-reading.ts'
import { readReport, type Report } from './cli-report.ts'
import { budgetLeft, spentProblem } from './budget.ts'
import { failedOutcome, tierModel, type Job, type Outcome, type Runner } from './runner.ts'

/** What the runner of headless agents works with; settings are read anew for each session. */
export interface CliOptions extends AgentOptions {
  /** The agent and its first arguments. */
  readonly command: () => readonly string[]
}

/** The tier's model when none is configured: the agent's own choice. */
const OWN_CHOICE = 'default'
/** Lines that are kept of an agent that is told to stop: a flood would outlast it. */
const LAST_LINES = 1_000

/**
 * The runner with a headless agent (decisions.md section 5, Runners): a process of its own, whose stream
 * of JSON lines becomes the session's output and outcome.
 */
export function createCliRunner(options: CliOptions): Runner {
  return { name: 'cli', modelOf: tierModel, run: (job) => runAgent(options, job) }
}

async function runAgent(options: CliOptions, job: Job): Promise<Outcome> {
  const { session, config, output } = job
  const [{ about, budgets, spent }, inventory] = await Promise.all([
    readBriefing(options, job),
    options.inventory.current(),
  ])
  const problem = spentProblem(budgets, spent, 0)
  if (problem !== undefined) return failedOutcome(problem)
  const budget = budgetLeft(budgets, spent)
  const { dryRun } = about
  const turns = options.maxTurns()
  const { argv, inherit } = agentCommand(options.command(), {
    prompt: options.redact(agentPrompt(about, inventory)),
    model: session.model === OWN_CHOICE ? undefined : session.model,
    mayRun: session.tier >= 2 && !dryRun,
    mayChange: session.tier >= 3 && !dryRun,
    ...{ turns, budget },
  })
  const folder = join(config.state_dir, 'sessions', String(session.id))
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 })
  } catch (error) {
    return failedOutcome(`its folder could not be made: ${messageOf(error)}`)
  }

  const control = new AbortController()
  const leave = (): void => control.abort()
  job.signal.addEventListener('abort', leave, { once: true })
  if (job.signal.aborted) leave()
  /** Waits until little output is left to be stored, or the agent is to stop. */
  async function ready(): Promise<void> {
    if (control.signal.aborted) return
    const { promise, resolve } = Promise.withResolvers<void>()
    const stop = (): void => resolve()
    control.signal.addEventListener('abort', stop, { once: true })
    void output.drained().then(resolve)
    await promise
    control.signal.removeEventListener('abort', stop)
  }
  let last = 0
  const show: Job['output']['write'] = (kind, text) => {
    if (control.signal.aborted && ++last > LAST_LINES) return
    output.write(kind, `${text}\n`)
  }
  const reading = createReading({ turns, cost: budget }, options.redact, show)
  const end = await runAgentProcess(
    argv,
    { inherit, cwd: folder, marker: job.marker },
    {
      line(text) {
        job.alive()
        reading.take(text)
        if (reading.hopeless() !== undefined) leave()
      },
      aside: (text) => show('error', text),
      ready,
      signal: control.signal,
    },
  )
  job.signal.removeEventListener('abort', leave)
  // Empty ones only: what the agent has left in it may be of use.
  await rmdir(folder).catch(() => undefined)
  const { outcome, report } = withSummary(outcomeOf(reading.end(), reading.hopeless(), end))
  if (outcome.status === 'completed') await record(options, job, report)
  return outcome
}

/** The result outranks the exit code, and what stopped the agent both; without a result it has failed. */
function outcomeOf(told: Told, hopeless: string | undefined, end: ProcessEnd): Outcome {
  const { result, message, cost, turns, problem } = told
  const why = hopeless ?? end.problem ?? (result?.ok === true ? undefined : result?.problem)
  const ended = { cost_usd: cost, num_turns: turns, exit_code: end.code }
  if (result?.ok === true && why === undefined) {
    return { status: 'completed', summary: message ?? null, problem: null, ...ended }
  }
  const silent = `the agent ended without a result (exit code ${end.code ?? 'none'})`
  const reason = why ?? (problem === undefined ? silent : `${silent}: ${problem}`)
  return { status: 'failed', summary: message ?? null, problem: reason, ...ended }
}

function withSummary(outcome: Outcome): { readonly outcome: Outcome; readonly report: Report } {
  const { text, report } = readReport(outcome.summary ?? '')
  return {
    outcome: { ...outcome, summary: text === '' ? null : text.slice(0, SUMMARY_LONGEST) },
    report,
  }
}

/** Does with a report what a model does by its tools: the same rules hold. */
async function record(options: CliOptions, job: Job, report: Report): Promise<void> {
  const calls = [
    ...report.events.map((event) => ['record_event', event] as const),
    ...report.memories.map((memory) => ['remember', memory] as const),
    ...(report.escalate === undefined ? [] : [['escalate', report.escalate] as const]),
  ]
  for (const [name, args] of calls) {
    if (job.signal.aborted) return
    const { ok, text } = await callTool(name, args, { ...options, job })
    if (!ok) job.output.write('error', `${name}: ${text}\n`)
  }
}
