import { codeOf, messageOf } from './log.ts'
import {
  endHolders,
  endMarked,
  GRACE_MS,
  markedNow,
  signalGroup,
  startProcess,
  type Child,
  type SpawnOptions,
} from './spawn.ts'

/** How long the output of a process may be open after its end. */
const LAST_WORDS_MS = 1_000
/** How long a command may take to its end once it is told to, with its output. */
export const ENDING_MS = GRACE_MS + LAST_WORDS_MS

/** What came of a command. */
export interface CommandResult {
  /** Its exit code; null when it was ended or did not start. */
  readonly code: number | null
  /** Standard output and error as they came, up to the limit. */
  readonly output: string
  /** Why there is no exit code, in words; null when there is one. */
  readonly problem: string | null
  /** Where that is the reason: there is no such program, or none that may be run. */
  readonly missing: 'absent' | 'forbidden' | null
}

/** Bytes of a command's output that are kept where nothing else is said. */
export const OUTPUT_BYTES = 64 * 1024

export interface CommandOptions extends SpawnOptions {
  readonly timeoutMs: number
  readonly signal?: AbortSignal
  /** Bytes of output that are kept; `OUTPUT_BYTES` when absent. */
  readonly limit?: number
  /**
   * What it has started lives on when it ends with 0, such as a service. Otherwise all that bears its marker,
   * which is then its own, goes with it.
   */
  readonly leaves?: boolean
}

/**
 * Runs a command to its end, its time-out or the signal; its whole group is gone afterwards, unless it
 * ended well and may leave something. Never rejects.
 */
export function runCommand(
  argv: readonly string[],
  { timeoutMs, signal, limit = OUTPUT_BYTES, leaves = false, ...options }: CommandOptions,
): Promise<CommandResult> {
  if (signal?.aborted === true) return Promise.resolve(noResult('it was stopped before it began'))
  let child: Child
  try {
    child = startProcess(argv, options)
  } catch (error) {
    return Promise.resolve(notStarted(error))
  }
  const { promise, resolve } = Promise.withResolvers<CommandResult>()
  const closed = Promise.withResolvers<void>()
  const own = leaves ? options.marker : undefined
  const chunks: Buffer[] = []
  let size = 0
  let ended: string | null = null
  let known: readonly string[] = []
  let kill: NodeJS.Timeout | undefined

  function collect(chunk: Buffer): void {
    if (size < limit) chunks.push(chunk.subarray(0, limit - size))
    size += chunk.length
  }
  function end(why: string): void {
    // Told once: at the second time some of its descendants are no longer known, and others leave at once.
    if (ended !== null) return
    ended = why
    // One that has cleared its environment is known by its parent, and that one is about to end.
    if (own !== undefined) known = markedNow(own)
    signalGroup(child, 'SIGTERM')
    kill = setTimeout(() => signalGroup(child, 'SIGKILL'), GRACE_MS).unref()
  }
  const abort = (): void => end('it was stopped')
  const timer = setTimeout(() => end(`it took over ${timeoutMs / 1000} s`), timeoutMs)
  signal?.addEventListener('abort', abort, { once: true })

  /** It has ended, or never began: neither time-out nor signal is about what it has left. */
  function over(): void {
    clearTimeout(timer)
    clearTimeout(kill)
    signal?.removeEventListener('abort', abort)
  }
  /** Ends what it has left, unless that stays, and waits for its last words. */
  async function leave(stays: boolean): Promise<void> {
    if (!stays) {
      signalGroup(child, 'SIGKILL')
      endHolders(known)
      // It fails where no descriptors are left to look.
      if (own !== undefined) await endMarked(own).catch(() => 0)
    }
    // They may still be in the pipes; a process that it left behind may hold them open.
    const last = setTimeout(closed.resolve, LAST_WORDS_MS)
    await closed.promise
    clearTimeout(last)
    for (const pipe of [child.stdout, child.stderr]) {
      pipe.off('data', collect)
      // What stays and writes would be ended by a pipe that is closed.
      if (stays) pipe.resume()
      else pipe.destroy()
    }
  }
  child.stdout.on('data', collect)
  child.stderr.on('data', collect)
  child.on('close', () => closed.resolve())
  child.on('error', (error) => {
    over()
    resolve(notStarted(error))
  })
  child.on('exit', async (exitCode, by) => {
    over()
    const problem = ended ?? (exitCode === null ? `it was ended by ${by}` : null)
    // One that ends with 0 when it is told to has not come to its end.
    const code = problem === null ? exitCode : null
    await leave(code === 0 && leaves)
    resolve({ code, output: Buffer.concat(chunks).toString('utf8'), problem, missing: null })
  })
  return promise
}

function notStarted(error: unknown): CommandResult {
  const code = codeOf(error)
  const missing = code === 'ENOENT' ? 'absent' : code === 'EACCES' ? 'forbidden' : null
  return { ...noResult(`it could not be started: ${messageOf(error)}`), missing }
}

function noResult(problem: string): CommandResult {
  return { code: null, output: '', problem, missing: null }
}
