import { mkdir, rmdir } from 'node:fs/promises'
import { constants } from 'node:os'
import { basename, join } from 'node:path'
import { messageOf } from '../../../kernel/log.ts'
import { runProcess, type ProcessEnd, type ProcessOptions } from '../../../kernel/processes/run.ts'
import type { LineKind } from '../sessions/output.ts'
import { callTool } from '../tools/toolbox.ts'
import { agentPrompt, storedSummary, readBriefing, type AgentOptions } from './briefing.ts'
import { spentProblem } from './budget.ts'
import {
  createStreamReader,
  readReport,
  type Limits,
  type Report,
  type StreamEnd,
} from './cli-reading.ts'
import { splitLines } from '../../../kernel/lines.ts'
import { failedOutcome, tierModel, type Job, type Outcome, type Runner } from './runner.ts'

export interface CliOptions extends AgentOptions {
  /** The agent and its first arguments. */
  command: () => readonly string[]
}

/** The configured model that leaves the choice to the agent. */
const AGENTS_CHOICE = 'default'
/** Characters of a line of JSON that are read; of the texts in it see `MAX_TEXT`. */
const MAX_LINE = 1024 * 1024
/** Lines that are kept of an agent that is being stopped: a flood must not outlast it. */
const MAX_LAST_LINES = 1_000

/** What an agent is asked. */
interface AgentRequest extends Limits {
  prompt: string
  /** Undefined if the agent chooses. */
  model: string | undefined
  /** Whether it may change files: tier 3, and no dry run. */
  mayChange: boolean
  /**
   * Whether it may run the commands that its own settings allow: tier 2 and up, and no dry run.
   */
  mayRun: boolean
}

interface Agent {
  /** They may have its key, its account and its endpoint. */
  variables: readonly string[]
  args: (request: AgentRequest) => readonly string[]
}

const CLAUDE: Agent = {
  variables: [
    'ANTHROPIC_API_KEY',
    'ANTHROPIC_AUTH_TOKEN',
    'ANTHROPIC_BASE_URL',
    'CLAUDE_CODE_OAUTH_TOKEN',
    'CLAUDE_CONFIG_DIR',
  ],
  // `dontAsk`: the agent uses these tools and what the operator's own settings allow, nothing
  // else.
  args: ({ prompt, model, mayChange, mayRun, turns, budget }) => [
    ...['-p', prompt, '--output-format', 'stream-json', '--verbose'],
    ...option('--model', model),
    ...['--permission-mode', 'dontAsk', '--strict-mcp-config', '--tools'],
    `Read,Grep,Glob${mayRun ? ',Bash' : ''}${mayChange ? ',Edit,Write' : ''}`,
    ...['--max-turns', String(turns)],
    ...option('--max-budget-usd', budget === Infinity ? undefined : budget.toFixed(4)),
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
  return { modelOf: tierModel, run: (job) => runAgent(options, job) }
}

async function runAgent(options: CliOptions, job: Job): Promise<Outcome> {
  const { session, config } = job
  const briefing = await readBriefing(options, job)
  const { dryRun, budgets, spent, allowance } = briefing
  const problem = spentProblem(budgets, spent, 0)
  if (problem !== undefined) return failedOutcome(problem)
  const limits = { turns: allowance.turns, budget: allowance.dollars }
  const command = options.command()
  // An unknown program takes the arguments of claude.
  const { args, variables } = AGENTS[basename(command[0] ?? '')] ?? CLAUDE
  const reportKey = options.random(8).toString('hex')
  const agentArgs = args({
    prompt: options.redact(agentPrompt(briefing, options.random, reportKey)),
    model: session.model === AGENTS_CHOICE ? undefined : session.model,
    mayRun: session.tier >= 2 && !dryRun,
    mayChange: session.tier >= 3 && !dryRun,
    ...limits,
  })
  const folder = join(config.state_dir, 'sessions', String(session.id))
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 })
  } catch (error) {
    return failedOutcome(`its folder could not be made: ${messageOf(error)}`)
  }
  const argv = [...command, ...agentArgs]
  const process = { inherit: variables, cwd: folder, marker: job.marker }
  const { outcome, message } = await readAgent(options, job, limits, argv, process)
  const { text, report, hasForeignReport } = readReport(message, reportKey)
  if (hasForeignReport) {
    job.output.write('system', 'A report without the key of this session is not recorded.\n')
  }
  // Only if it is empty: what the agent has left in it may be of use.
  await rmdir(folder).catch(() => undefined)
  if (outcome.problem === null) await record(options, job, report)
  return { ...outcome, summary: text === '' ? null : storedSummary(text) }
}

/**
 * Runs the agent, line by line. Its output becomes the session's output; gives its last message.
 * All its descendants are gone afterwards.
 */
async function readAgent(
  { redact }: CliOptions,
  { signal: jobSignal, output, noteActivity, noteCost }: Job,
  limits: Limits,
  argv: readonly string[],
  options: ProcessOptions,
): Promise<{ outcome: Omit<Outcome, 'summary'>; message: string }> {
  const fatal = new AbortController()
  const signal = AbortSignal.any([jobSignal, fatal.signal])
  let lastLines = 0
  function show(kind: LineKind, text: string, call?: number | null): void {
    if (!signal.aborted || ++lastLines <= MAX_LAST_LINES) output.write(kind, `${text}\n`, call)
  }
  const reader = createStreamReader(limits, redact, show)
  const lines = {
    stdout: splitLines(MAX_LINE, (line) => {
      noteActivity()
      reader.take(line)
      noteCost(reader.cost())
      if (reader.fatal() !== undefined) fatal.abort()
    }),
    stderr: splitLines(MAX_LINE, (line) => show('error', line)),
  }
  const end = await runProcess(argv, {
    ...options,
    signal,
    ownsMarker: true,
    // The first two leave an agent time to say what it has cost.
    stopSignals: ['SIGINT', 'SIGTERM', 'SIGKILL'],
    onOutput(bytes, pipe) {
      lines[pipe].push(bytes)
      // An agent that floods must wait.
      return output.drained()
    },
  })
  lines.stdout.end()
  lines.stderr.end()
  const { message = '', ...streamEnd } = reader.end()
  const outcome = outcomeOf(streamEnd, reader.fatal(), end)
  return { outcome, message }
}

/** A fatal problem outranks the agent's result, and that outranks the exit code. */
function outcomeOf(
  { result, problem, ...spent }: Omit<StreamEnd, 'message'>,
  fatal: string | undefined,
  { exitCode, endedBy, problem: processProblem }: ProcessEnd,
): Omit<Outcome, 'summary'> {
  const code = exitCode ?? (endedBy === null ? null : 128 + constants.signals[endedBy])
  const startProblem = code === null ? `the agent ${processProblem}` : undefined
  const silent = `the agent ended without a result (exit code ${code ?? 'none'})`
  const unsaid = problem === undefined ? silent : `${silent}: ${problem}`
  const why = fatal ?? startProblem ?? (result === undefined ? unsaid : result.problem)
  return { ...spent, problem: why ?? null, tool_calls: null, exit_code: code }
}

/** Does with a report what a model does with its tools: the same rules hold. */
async function record(options: CliOptions, job: Job, report: Report): Promise<void> {
  for (const [name, args] of report) {
    if (job.signal.aborted) return
    const { ok, text } = await callTool(name, args, { ...options, job })
    if (!ok) job.output.write('error', `${name}: ${text}\n`)
  }
}
