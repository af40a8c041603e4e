import { once } from 'node:events'
import { spawn, type ChildProcess } from 'node:child_process'
import type { Socket } from 'node:net'
import type { Writable } from 'node:stream'
import { codeOf, messageOf } from '../log.ts'
import { pause } from '../time.ts'
import { LAST_OUTPUT_MS, readOutput, type TakeOutput } from './output.ts'
import { endHolders, endMarked, kill, MARKER, markedNow } from './marked.ts'

export interface ProcessOptions {
  cwd?: string
  /** Variables beside the inherited ones. */
  env?: Readonly<Record<string, string>>
  /** Names of further variables of ours that the process gets, if they are set. */
  inherit?: readonly string[]
  /**
   * Marks the process and its descendants, so that they are found: a session's marker or an
   * operation's.
   */
  marker?: string | undefined
  /** No other process uses the marker now: everything that carries it ends with this one. */
  ownsMarker?: boolean
  /** If it exits with 0, what it has started lives on, such as a service. */
  leaves?: boolean
  /** The bytes of its standard input, which is closed otherwise. */
  input?: Uint8Array
  timeoutMs?: number | undefined
  signal?: AbortSignal
  /** Aborted to kill its group at once, such as when this process exits. */
  kill?: AbortSignal
}

interface CommandOptions extends ProcessOptions {
  /** How much of its output is kept. */
  outputBytes?: number | undefined
}

interface RunOptions extends ProcessOptions {
  /** Sent to the process group one after the other, with time in between to leave. */
  stopSignals: readonly NodeJS.Signals[]
  onOutput: TakeOutput
}

/** How a process ended. */
export interface ProcessEnd {
  /** Null if a signal ended the process, or it did not start. */
  exitCode: number | null
  endedBy: NodeJS.Signals | null
  /** Why it was stopped or did not start, to be read after "it"; null if neither. */
  problem: string | null
  /** Why it did not start, if known: the program does not exist, or may not be executed. */
  missing: 'absent' | 'forbidden' | null
}

/** What came of a command. */
export type CommandResult = Awaited<ReturnType<typeof runCommand>>

/** A process in a group of its own. */
type Child = ChildProcess & { stdin: Writable | null; stdout: Socket; stderr: Socket }

const DEFAULT_OUTPUT_BYTES = 64 * 1024
/** The variables that every process gets: none of them is secret. */
const INHERITED = ['PATH', 'HOME', 'USER', 'LANG', 'LC_ALL', 'TZ', 'TMPDIR', 'XDG_RUNTIME_DIR']
/** How long a process group may take to leave after a signal. */
const GRACE_MS = 2_000
/** How long a command may take to end once it is stopped, with its output. */
export const MAX_STOP_MS = GRACE_MS + LAST_OUTPUT_MS

/**
 * Runs a command to its end, the time-out or the signal, and collects the beginning of its output.
 * Its group is gone afterwards, unless it exited with 0 and may leave something. Never rejects.
 */
export async function runCommand(
  argv: readonly string[],
  { outputBytes = DEFAULT_OUTPUT_BYTES, ...options }: CommandOptions,
) {
  const chunks: Buffer[] = []
  let size = 0
  const end = await runProcess(argv, {
    ...options,
    stopSignals: ['SIGTERM', 'SIGKILL'],
    onOutput(bytes) {
      if (size < outputBytes) chunks.push(bytes.subarray(0, outputBytes - size))
      size += bytes.length
    },
  })
  const why = problemOf(end)
  return {
    // Null if there is a problem: one that exits with 0 because it was stopped has not done its
    // work.
    code: why === null ? end.exitCode : null,
    // Standard output and error together.
    output: Buffer.concat(chunks).toString('utf8'),
    // It wrote more, or was stopped before it had written everything.
    isCut: why !== null || size >= outputBytes,
    problem: why === null ? null : `it ${why}`,
    missing: end.missing,
  }
}

/** Why a process did not end by itself, to be read after "it"; null if it did. */
export function problemOf({ problem, endedBy }: ProcessEnd): string | null {
  return problem ?? (endedBy === null ? null : `was ended by ${endedBy}`)
}

/**
 * Runs a program by its argument list: no shell sees it. Rejects only with what `onOutput` throws.
 */
export async function runProcess(
  argv: readonly string[],
  options: RunOptions,
): Promise<ProcessEnd> {
  const { signal, timeoutMs, marker, ownsMarker = false, leaves = false } = options
  if (signal?.aborted === true) return notStarted('was stopped before it began')
  let child: Child
  try {
    child = startProcess(argv, options)
  } catch (error) {
    return failedStart(error)
  }
  const own = ownsMarker ? marker : undefined
  const exited = new AbortController()
  let problem: string | null = null
  let descendants: readonly string[] = []

  async function stop(why: string): Promise<void> {
    if (problem !== null) return
    problem = why
    // Once the process exits, descendants that cleared their environment can't be traced to it.
    if (own !== undefined) descendants = markedNow(own)
    for (const stopSignal of options.stopSignals) {
      if (exited.signal.aborted) return
      signalGroup(child, stopSignal)
      await pause(GRACE_MS, exited.signal)
    }
  }
  const abort = (): void => void stop('was stopped')
  const killNow = (): void => signalGroup(child, 'SIGKILL')
  signal?.addEventListener('abort', abort, { once: true })
  options.kill?.addEventListener('abort', killNow, { once: true })
  const timer =
    timeoutMs && setTimeout(() => void stop(`took over ${timeoutMs / 1_000} s`), timeoutMs)
  const output = readOutput(child, options.onOutput, abort)

  const end = await endOf(child)
  exited.abort()
  clearTimeout(timer)
  signal?.removeEventListener('abort', abort)
  options.kill?.removeEventListener('abort', killNow)
  const stays = leaves && end.exitCode === 0 && problem === null
  if (!stays) {
    signalGroup(child, 'SIGKILL')
    endHolders(descendants)
    // It fails if no file descriptors are left; the end of the session sweeps again.
    if (own !== undefined) await endMarked(own).catch(() => 0)
  }
  await output.finish(stays)
  return { ...end, problem: problem ?? end.problem }
}

/** Throws for a program that can't even be tried, such as one with too long arguments. */
function startProcess(argv: readonly string[], options: ProcessOptions): Child {
  const [program = '', ...args] = argv
  const { cwd, env, inherit = [], marker, input } = options
  // Node leaves out variables that are undefined.
  const inherited = [...INHERITED, ...inherit].map((name) => [name, process.env[name]])
  const child: ChildProcess = spawn(program, args, {
    cwd,
    env: { ...Object.fromEntries(inherited), ...env, [MARKER]: marker },
    stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    detached: true,
  })
  // A program need not read its input: it may have closed it, or have ended.
  child.stdin?.on('error', () => undefined).end(input)
  if (hasPipes(child)) return child
  // The error event comes later, and without a listener it would end this process.
  child.on('error', () => undefined)
  throw new Error(`${program} can't be started: no file descriptors are left`)
}

function hasPipes(child: ChildProcess): child is Child {
  return (child.stdout ?? null) !== null && (child.stderr ?? null) !== null
}

async function endOf(child: Child): Promise<ProcessEnd> {
  try {
    const [exitCode, endedBy] = await once(child, 'exit')
    return { exitCode, endedBy, problem: null, missing: null }
  } catch (error) {
    return failedStart(error)
  }
}

function signalGroup({ pid }: Child, signal: NodeJS.Signals): void {
  if (pid !== undefined) kill(-pid, signal)
}

function failedStart(error: unknown): ProcessEnd {
  const code = codeOf(error)
  const missing = code === 'ENOENT' ? 'absent' : code === 'EACCES' ? 'forbidden' : null
  return { ...notStarted(`could not be started: ${messageOf(error)}`), missing }
}

function notStarted(problem: string): ProcessEnd {
  return { exitCode: null, endedBy: null, problem, missing: null }
}
