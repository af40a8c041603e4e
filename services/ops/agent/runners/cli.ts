import { mkdir, rm, rmdir, writeFile } from 'node:fs/promises'
import { constants } from 'node:os'
import { dirname, join } from 'node:path'
import { splitLines } from '../../../../kernel/lines.ts'
import { messageOf } from '../../../../kernel/log.ts'
import {
  runProcess,
  type ProcessEnd,
  type ProcessOptions,
} from '../../../../kernel/processes/run.ts'
import type { LineKind } from '../sessions/output.ts'
import type { Offers } from '../tools/offers.ts'
import { agentPrompt, storedSummary, readBriefing, type AgentOptions } from './briefing.ts'
import { spentProblem } from './budget.ts'
import { agentOf, TOKEN_VARIABLE, type AgentRequest } from './cli-agents.ts'
import { createStreamReader, readSummary, type StreamEnd } from './cli-reading.ts'
import { failedOutcome, tierModel, type Job, type Outcome, type Runner } from './runner.ts'

export interface CliOptions extends AgentOptions {
  /** The agent and its first arguments. */
  command: () => readonly string[]
  offers: Offers
  /** Where agents of this machine find `/mcp/session`; undefined where no port has it. */
  toolsUrl: () => string | undefined
}

/** The configured model that leaves the choice to the agent. */
const AGENTS_CHOICE = 'default'
/** Characters of a line of JSON that are read; of the texts in it see `MAX_TEXT`. */
const MAX_LINE = 1024 * 1024
/** Lines that are kept of an agent that is being stopped: a flood must not outlast it. */
const MAX_LAST_LINES = 1_000
const NO_ADDRESS =
  'the agent could not reach the tools of its session: OPS_ADDR is a unix socket; ' +
  'have ops listen at a port of this machine'
const NEVER_CAME =
  'the agent never asked for the tools of its session, so nothing that it says was checked: ' +
  'see whether this version of it takes our settings of MCP'

/**
 * The runner with a headless agent (decisions.md section 5, Runners): a process of its own, whose
 * stream of JSON lines becomes the session's output and outcome. It acts by the tools of its
 * session, which it calls by the tool protocol: the rules of the runner with a model hold.
 */
export function createCliRunner(options: CliOptions): Runner {
  return { modelOf: tierModel, run: (job) => runAgent(options, job) }
}

async function runAgent(options: CliOptions, job: Job): Promise<Outcome> {
  const { session, config } = job
  const briefing = await readBriefing(options, job)
  const { budgets, spent, allowance } = briefing
  const problem = spentProblem(budgets, spent, 0)
  if (problem !== undefined) return failedOutcome(problem)
  const toolsUrl = options.toolsUrl()
  if (toolsUrl === undefined) return failedOutcome(NO_ADDRESS)
  const offer = options.offers.make({ ...options, job })
  const request = {
    prompt: options.redact(agentPrompt(briefing, options.random)),
    model: session.model === AGENTS_CHOICE ? undefined : session.model,
    toolsUrl,
    token: offer.token,
    turns: allowance.turns,
    budget: allowance.dollars,
  }
  const folder = join(config.state_dir, 'sessions', String(session.id))
  try {
    const { outcome, message } = await startAgent(options, job, request, folder)
    const { hasCome, calls } = offer.use
    const isBlind = !hasCome && outcome.problem === null
    const summary = readSummary(message)
    return {
      ...outcome,
      problem: isBlind ? NEVER_CAME : outcome.problem,
      tool_calls: calls,
      summary: summary === '' ? null : storedSummary(summary),
    }
  } finally {
    offer.withdraw()
  }
}

/** Starts the agent in a folder of its own, which stays only if the agent has left something. */
async function startAgent(
  options: CliOptions,
  job: Job,
  request: AgentRequest,
  folder: string,
): Promise<Ended> {
  const command = options.command()
  const { variables, args, env, files } = agentOf(command)
  const settings = Object.entries(files?.(request) ?? {})
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    for (const [name, text] of settings) await writeSettings(join(folder, name), text)
  } catch (error) {
    const outcome = failedOutcome(`its folder could not be made: ${messageOf(error)}`)
    return { outcome, message: '' }
  }
  const ended = await readAgent(options, job, request, [...command, ...args(request)], {
    inherit: variables,
    cwd: folder,
    marker: job.marker,
    env: { ...env?.(request), [TOKEN_VARIABLE]: request.token },
  })
  for (const [name] of settings) await removeSettings(join(folder, name))
  await rmdir(folder).catch(() => undefined)
  return ended
}

async function writeSettings(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { mode: 0o700 })
  await writeFile(path, text, { mode: 0o600 })
}

/** With its folder, unless the agent has left something there. */
async function removeSettings(path: string): Promise<void> {
  await rm(path, { force: true })
  await rmdir(dirname(path)).catch(() => undefined)
}

interface Ended {
  outcome: Outcome
  /** The agent's last message. */
  message: string
}

/**
 * Runs the agent, line by line. Its output becomes the session's output; gives its last message.
 * All its descendants are gone afterwards.
 */
async function readAgent(
  { redact }: CliOptions,
  { signal: jobSignal, output, noteActivity, noteCost }: Job,
  request: AgentRequest,
  argv: readonly string[],
  options: ProcessOptions,
): Promise<Ended> {
  const fatal = new AbortController()
  const signal = AbortSignal.any([jobSignal, fatal.signal])
  let lastLines = 0
  function show(kind: LineKind, text: string, call?: number | null): void {
    // An agent may list its variables.
    const shown = text.replaceAll(request.token, '«redacted»')
    if (!signal.aborted || ++lastLines <= MAX_LAST_LINES) output.write(kind, `${shown}\n`, call)
  }
  const reader = createStreamReader(request, redact, show)
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
): Outcome {
  const code = exitCode ?? (endedBy === null ? null : 128 + constants.signals[endedBy])
  const startProblem = code === null ? `the agent ${processProblem}` : undefined
  const silent = `the agent ended without a result (exit code ${code ?? 'none'})`
  const unsaid = problem === undefined ? silent : `${silent}: ${problem}`
  const why = fatal ?? startProblem ?? (result === undefined ? unsaid : result.problem)
  return { ...spent, problem: why ?? null, tool_calls: null, exit_code: code, summary: null }
}
