import { mkdir, rmdir } from 'node:fs/promises'
import { constants } from 'node:os'
import { basename, join } from 'node:path'
import { messageOf } from '../../../kernel/log.ts'
import { runProcess, splitLines, type ProcessEnd, type ProcessOptions } from '../processes/run.ts'
import { callTool } from '../tools/toolbox.ts'
import { agentPrompt, MAX_SUMMARY, readBriefing, type AgentOptions } from './briefing.ts'
import { budgetLeft, spentProblem } from './budget.ts'
import {
  createStreamReader,
  readReport,
  type Limits,
  type Report,
  type StreamEnd,
} from './cli-reading.ts'
import { failedOutcome, tierModel, type Job, type Outcome, type Runner } from './runner.ts'

export interface CliOptions extends AgentOptions {
  /** The agent and its first arguments. */
  readonly command: () => readonly string[]
}

/** What is done with an agent's output while it runs. */
interface AgentListener {
  /** Takes a line of standard output. */
  readonly stdout: (line: string) => void
  /** Takes a line of standard error. */
  readonly stderr: (line: string) => void
  /** Resolves when more may be read: an agent that floods must wait. */
  readonly ready: () => Promise<unknown>
}

/** The configured model that leaves the choice to the agent. */
const AGENTS_CHOICE = 'default'
/** Bytes of a line that are read. */
const MAX_LINE = 4 * 1024 * 1024
/** Lines that are kept of an agent that is being stopped: a flood must not outlast it. */
const MAX_LAST_LINES = 1_000

/** What an agent is asked. */
interface AgentRequest {
  readonly prompt: string
  /** Undefined if the agent chooses. */
  readonly model: string | undefined
  /** Whether it may change files: tier 3, and no dry run. */
  readonly mayChange: boolean
  /** Whether it may run the commands that its own settings allow: tier 2 and up, and no dry run. */
  readonly mayRun: boolean
  readonly turns: number
  /** US dollars that are left; undefined for no limit. */
  readonly budget: number | undefined
}

interface Agent {
  /** They may have its key, its account and its endpoint. */
  readonly variables: readonly string[]
  readonly args: (request: AgentRequest) => readonly string[]
}

const CLAUDE: Agent = {
  variables: [
    'ANTHROPIC_API_KEY',
    'ANTHROPIC_AUTH_TOKEN',
    'ANTHROPIC_BASE_URL',
    'CLAUDE_CODE_OAUTH_TOKEN',
    'CLAUDE_CONFIG_DIR',
  ],
  // `dontAsk`: the agent uses these tools and what the operator's own settings allow, nothing else.
  args: ({ prompt, model, mayChange, mayRun, turns, budget }) => [
    ...['-p', prompt, '--output-format', 'stream-json', '--verbose'],
    ...option('--model', model),
    ...['--permission-mode', 'dontAsk', '--strict-mcp-config', '--tools'],
    `Read,Grep,Glob${mayRun ? ',Bash' : ''}${mayChange ? ',Edit,Write' : ''}`,
    ...['--max-turns', String(turns)],
    ...option('--max-budget-usd', budget?.toFixed(4)),
  ],
}

const AGENTS: Readonly<Record<string, Agent>> = {
  codex: {
    variables: ['OPENAI_API_KEY', 'CODEX_API_KEY', 'OPENAI_BASE_URL', 'CODEX_HOME'],
    args: ({ prompt, model, mayChange }) => [
      ...['exec', '--json', '--skip-git-repo-check'],
      ...['--sandbox', mayChange ? 'workspace-write' : 'read-only'],
      ...option('--model', model),
      ...['--', prompt],
    ],
  },
  opencode: {
    variables: ['ANTHROPIC_API_KEY', 'OPENAI_API_KEY', 'OPENROUTER_API_KEY', 'OPENCODE_CONFIG'],
    args: ({ prompt, model, mayChange }) => [
      ...['run', '--format', 'json', '--agent', mayChange ? 'build' : 'plan'],
      ...option('--model', model),
      ...['--', prompt],
    ],
  },
  gemini: {
    variables: ['GEMINI_API_KEY', 'GOOGLE_API_KEY', 'GOOGLE_GENAI_USE_VERTEXAI'],
    args: ({ prompt, model }) => [
      ...['-o', 'stream-json'],
      ...option('-m', model),
      ...['-p', prompt],
    ],
  },
}

/** The variables of all agents whose values are secrets. */
export const AGENT_SECRETS: readonly string[] = [CLAUDE, ...Object.values(AGENTS)]
  .flatMap(({ variables }) => variables)
  .filter((name) => /_(KEY|TOKEN)$/.test(name))

/** An option of a command line; nothing without a value. */
function option(name: string, value: string | undefined): readonly string[] {
  return value === undefined ? [] : [name, value]
}

/**
 * The runner with a headless agent (decisions.md section 5, Runners): a process of its own, whose
 * stream of JSON lines becomes the session's output and outcome.
 */
export function createCliRunner(options: CliOptions): Runner {
  return { name: 'cli', modelOf: tierModel, run: (job) => runAgent(options, job) }
}

async function runAgent(options: CliOptions, job: Job): Promise<Outcome> {
  const { session, config } = job
  const [{ about, budgets, spent }, inventory] = await Promise.all([
    readBriefing(options, job),
    options.inventory.current(),
  ])
  const problem = spentProblem(budgets, spent, 0)
  if (problem !== undefined) return failedOutcome(problem)
  const budget = budgetLeft(budgets, spent)
  const turns = options.maxTurns()
  const command = options.command()
  // An unknown program takes the arguments of claude.
  const { args, variables } = AGENTS[basename(command[0] ?? '')] ?? CLAUDE
  const agentArgs = args({
    prompt: options.redact(agentPrompt(about, inventory)),
    model: session.model === AGENTS_CHOICE ? undefined : session.model,
    mayRun: session.tier >= 2 && !about.dryRun,
    mayChange: session.tier >= 3 && !about.dryRun,
    ...{ turns, budget },
  })
  const folder = join(config.state_dir, 'sessions', String(session.id))
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 })
  } catch (error) {
    return failedOutcome(`its folder could not be made: ${messageOf(error)}`)
  }
  const limits = { turns, cost: budget }
  const argv = [...command, ...agentArgs]
  const process = { inherit: variables, cwd: folder }
  const { outcome, report } = await readAgent(options, job, limits, argv, process)
  // Only if it is empty: what the agent has left in it may be of use.
  await rmdir(folder).catch(() => undefined)
  if (outcome.problem === null) await record(options, job, report)
  return outcome
}

/** Runs the agent. Its output becomes the session's output, and its last message the summary. */
async function readAgent(
  { redact }: CliOptions,
  job: Job,
  limits: Limits,
  argv: readonly string[],
  options: ProcessOptions,
): Promise<{ readonly outcome: Outcome; readonly report: Report }> {
  const fatal = new AbortController()
  const signal = AbortSignal.any([job.signal, fatal.signal])
  let lastLines = 0
  const show: Job['output']['write'] = (kind, text) => {
    if (signal.aborted && ++lastLines > MAX_LAST_LINES) return
    job.output.write(kind, `${text}\n`)
  }
  const reader = createStreamReader(limits, redact, show)
  const end = await runAgentProcess(
    argv,
    { ...options, marker: job.marker, signal },
    {
      stdout(line) {
        job.noteActivity()
        reader.take(line)
        if (reader.fatal() !== undefined) fatal.abort()
      },
      stderr: (line) => show('error', line),
      ready: () => drainedOrAborted(job.output, signal),
    },
  )
  const outcome = outcomeOf(reader.end(), reader.fatal(), end)
  const { text, report } = readReport(outcome.summary ?? '')
  const summary = text === '' ? null : text.slice(0, MAX_SUMMARY)
  return { outcome: { ...outcome, summary }, report }
}

/** Waits until little output is left to be stored, or the agent is to stop. */
async function drainedOrAborted(output: Job['output'], signal: AbortSignal): Promise<void> {
  if (signal.aborted) return
  const { promise, resolve } = Promise.withResolvers<void>()
  const stop = (): void => resolve()
  signal.addEventListener('abort', stop, { once: true })
  void output.drained().then(resolve)
  await promise
  signal.removeEventListener('abort', stop)
}

/**
 * Runs an agent, line by line. All its descendants are gone afterwards. Rejects if a line is not
 * taken.
 */
export async function runAgentProcess(
  argv: readonly string[],
  options: ProcessOptions & { readonly marker: string },
  { stdout, stderr, ready }: AgentListener,
): Promise<ProcessEnd> {
  const lines = { stdout: splitLines(MAX_LINE, stdout), stderr: splitLines(MAX_LINE, stderr) }
  const end = await runProcess(argv, {
    ...options,
    ownsMarker: true,
    // The first two leave an agent time to say what it has cost.
    stopSignals: ['SIGINT', 'SIGTERM', 'SIGKILL'],
    onOutput(bytes, pipe) {
      lines[pipe].push(bytes)
      return ready()
    },
  })
  lines.stdout.end()
  lines.stderr.end()
  return end
}

/** A fatal problem outranks the agent's result, and that outranks the exit code. */
function outcomeOf(
  { result, message, cost, turns, problem }: StreamEnd,
  fatal: string | undefined,
  { exitCode, endedBy, problem: processProblem }: ProcessEnd,
): Outcome {
  const code = exitCode ?? (endedBy === null ? null : 128 + constants.signals[endedBy])
  const startProblem = code === null ? `the agent ${processProblem}` : undefined
  const why = fatal ?? startProblem ?? (result?.ok === true ? undefined : result?.problem)
  const ended = { summary: message ?? null, cost_usd: cost, num_turns: turns, exit_code: code }
  if (result?.ok === true && why === undefined) return { problem: null, ...ended }
  const silent = `the agent ended without a result (exit code ${code ?? 'none'})`
  const reason = why ?? (problem === undefined ? silent : `${silent}: ${problem}`)
  return { problem: reason, ...ended }
}

/** Does with a report what a model does with its tools: the same rules hold. */
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
