import { spawn, type ChildProcess, type ChildProcessByStdio } from 'node:child_process'
import type { Readable } from 'node:stream'
import { codeOf, messageOf } from '../../../kernel/log.ts'
import { pause } from '../../../kernel/time.ts'
import { endHolders, endMarked, kill, MARKER, markedNow } from './proc.ts'

export interface ProcessOptions {
  readonly cwd?: string
  /** Variables beside the inherited ones. */
  readonly env?: Readonly<Record<string, string>>
  /** Names of further variables of ours that the process gets, if they are set. */
  readonly inherit?: readonly string[]
  /**
   * Marks the process and its descendants, so that they are found: a session's marker or an
   * operation's.
   */
  readonly marker?: string | undefined
  /** No other process uses the marker now: everything that carries it ends with this one. */
  readonly ownsMarker?: boolean
  /** If it exits with 0, what it has started lives on, such as a service. */
  readonly leaves?: boolean
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
}

interface RunOptions extends ProcessOptions {
  /** Sent to the process group one after the other, with time in between to leave. */
  readonly stopSignals: readonly NodeJS.Signals[]
  /** Takes what the process writes. Reading waits for the promise; a throw stops the process. */
  readonly onOutput: (bytes: Buffer, pipe: 'stdout' | 'stderr') => unknown
}

/** How a process ended. */
export interface ProcessEnd {
  /** Null if a signal ended the process, or it did not start. */
  readonly exitCode: number | null
  readonly endedBy: NodeJS.Signals | null
  /** Why it was stopped or did not start, to be read after "it"; null if neither. */
  readonly problem: string | null
  /** Why it did not start, if that is known: there is no such program, or it may not be run. */
  readonly missing: 'absent' | 'forbidden' | null
}

/** What came of a command. */
export interface CommandResult extends Pick<ProcessEnd, 'missing' | 'problem'> {
  /** Null if there is a problem. */
  readonly code: number | null
  /** The first `OUTPUT_BYTES` of standard output and error together. */
  readonly output: string
}

/** A process in a group of its own, without standard input. */
type Child = ChildProcessByStdio<null, Readable, Readable>

export const OUTPUT_BYTES = 64 * 1024
/** The variables that every process gets: none of them is secret. */
const INHERITED = ['PATH', 'HOME', 'USER', 'LANG', 'LC_ALL', 'TZ', 'TMPDIR', 'XDG_RUNTIME_DIR']
/** How long a process group may take to leave after a signal. */
const GRACE_MS = 2_000
/** How long the pipes of a process are read after its exit. */
const LAST_OUTPUT_MS = 1_000
const LAST_OUTPUT_LOOKS = 10
/** How long a command may take to end once it is stopped, with its output. */
export const MAX_STOP_MS = GRACE_MS + LAST_OUTPUT_MS

/**
 * Runs a command to its end, the time-out or the signal, and collects its output. Its group is gone
 * afterwards, unless it exited with 0 and may leave something. Never rejects.
 */
export async function runCommand(
  argv: readonly string[],
  options: ProcessOptions,
): Promise<CommandResult> {
  const chunks: Buffer[] = []
  let size = 0
  const { exitCode, endedBy, problem, missing } = await runProcess(argv, {
    ...options,
    stopSignals: ['SIGTERM', 'SIGKILL'],
    onOutput(bytes) {
      if (size < OUTPUT_BYTES) chunks.push(bytes.subarray(0, OUTPUT_BYTES - size))
      size += bytes.length
    },
  })
  const why = problem ?? (endedBy === null ? null : `was ended by ${endedBy}`)
  return {
    // One that exits with 0 because it was stopped has not done its work.
    code: why === null ? exitCode : null,
    output: Buffer.concat(chunks).toString('utf8'),
    problem: why === null ? null : `it ${why}`,
    missing,
  }
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
  signal?.addEventListener('abort', abort, { once: true })
  const timer =
    timeoutMs && setTimeout(() => void stop(`took over ${timeoutMs / 1_000} s`), timeoutMs)
  const output = readOutput(child, options.onOutput, abort)

  const end = await endOf(child)
  exited.abort()
  clearTimeout(timer)
  signal?.removeEventListener('abort', abort)
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
  const { cwd, env, inherit = [], marker } = options
  // Node leaves out variables that are undefined.
  const inherited = [...INHERITED, ...inherit].map((name) => [name, process.env[name]])
  const child: ChildProcess = spawn(program, args, {
    cwd,
    env: { ...Object.fromEntries(inherited), ...env, [MARKER]: marker },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  if (hasPipes(child)) return child
  // The error event comes later, and without a listener it would end this process.
  child.on('error', () => undefined)
  throw new Error(`${program} can't be started: no file descriptors are left`)
}

function hasPipes(child: ChildProcess): child is Child {
  return (child.stdout ?? null) !== null && (child.stderr ?? null) !== null
}

function endOf(child: Child): Promise<ProcessEnd> {
  const { promise, resolve } = Promise.withResolvers<ProcessEnd>()
  child.on('error', (error) => {
    if (child.pid === undefined) resolve(failedStart(error))
  })
  child.on('exit', (exitCode, endedBy) => {
    resolve({ exitCode, endedBy, problem: null, missing: null })
  })
  return promise
}

/** Reads the pipes of a process, also after its exit: its last words may still be in them. */
function readOutput(child: Child, onOutput: RunOptions['onOutput'], onBug: () => void) {
  const pipes = { stdout: child.stdout, stderr: child.stderr }
  let waiting = 0
  let ignored = false
  let bug: { readonly error: unknown } | undefined

  async function take(bytes: Buffer, name: keyof typeof pipes): Promise<void> {
    waiting++
    try {
      await onOutput(bytes, name)
    } catch (error) {
      bug ??= { error }
      onBug()
    }
    waiting--
  }
  async function read(name: keyof typeof pipes): Promise<void> {
    try {
      for await (const bytes of pipes[name]) {
        if (!ignored && bug === undefined) await take(bytes, name)
      }
    } catch {
      // `finish` has destroyed the pipe.
    }
  }
  const closed = Promise.all([read('stdout'), read('stderr')])

  return {
    /**
     * Reads the rest. `stays`: what the process has left goes on writing, and must not meet a
     * closed pipe.
     */
    async finish(stays: boolean): Promise<void> {
      const late = Promise.withResolvers<void>()
      // A process outside of the group may hold the pipes open forever.
      let looks = 0
      const timer = setInterval(() => {
        if (waiting === 0 && ++looks >= LAST_OUTPUT_LOOKS) late.resolve()
      }, LAST_OUTPUT_MS / LAST_OUTPUT_LOOKS)
      await Promise.race([closed, late.promise])
      clearInterval(timer)
      ignored = true
      if (!stays) for (const pipe of Object.values(pipes)) pipe.destroy()
      if (bug !== undefined) throw bug.error
    },
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

const LINE_END = 0x0a

/**
 * Splits bytes into lines, whatever their chunks: no character is cut at the border of a chunk. A
 * line with more than `maxBytes` is cut, so that no line takes more memory.
 */
export function splitLines(maxBytes: number, take: (line: string) => void) {
  let chunks: Buffer[] = []
  let size = 0

  function keep(bytes: Buffer): void {
    if (size < maxBytes) chunks.push(Buffer.from(bytes.subarray(0, maxBytes - size)))
    size += bytes.length
  }
  function endLine(): void {
    const line = Buffer.concat(chunks).toString('utf8')
    chunks = []
    size = 0
    take(line)
  }

  return {
    push(bytes: Buffer): void {
      let from = 0
      for (let at = bytes.indexOf(LINE_END); at >= 0; at = bytes.indexOf(LINE_END, from)) {
        keep(bytes.subarray(from, at))
        endLine()
        from = at + 1
      }
      if (from < bytes.length) keep(bytes.subarray(from))
    },
    /** Takes the last line if it has no end. */
    end(): void {
      if (size > 0) endLine()
    },
  }
}
