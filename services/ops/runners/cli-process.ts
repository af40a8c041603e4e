import { constants } from 'node:os'
import type { Readable } from 'node:stream'
import { messageOf } from '../../../kernel/log.ts'
import {
  endHolders,
  endMarked,
  markedNow,
  signalGroup,
  startProcess,
  stopGroup,
  type Child,
  type SpawnOptions,
} from '../../../kernel/spawn.ts'
import { splitLines } from './cli-lines.ts'

/** What is done with a process while it runs. */
export interface Watch {
  /** A line of its standard output, and one of its standard error. */
  readonly line: (text: string) => void
  readonly aside: (text: string) => void
  /** Resolves when more may be read: a process that floods is held up. */
  readonly ready: () => Promise<unknown>
  /** Aborted when it is to stop. */
  readonly signal: AbortSignal
}

/** How a process ended. */
export interface ProcessEnd {
  /** Its exit code, 128 and the number for one that a signal ended; null when it did not start. */
  readonly code: number | null
  /** Why it did not start, in one line. */
  readonly problem: string | null
}

/** Of a line, however long it is, so many bytes are read. */
const LINE_MOST = 4 * 1024 * 1024
/** Looks at the pipes of a process that is gone, and how many without a byte are enough. */
const LOOK_MS = 100
const SILENT_LOOKS = 20

/**
 * Runs an agent to its end or the signal. Whatever it has started is gone afterwards, also when a line is
 * not taken: that ends it, and is thrown.
 */
export async function runAgentProcess(
  argv: readonly string[],
  options: SpawnOptions & { readonly marker: string },
  watch: Watch,
): Promise<ProcessEnd> {
  if (watch.signal.aborted) return { code: null, problem: 'the agent was stopped before it began' }
  let child: Child
  try {
    child = startProcess(argv, options)
  } catch (error) {
    return notStarted(error)
  }
  const ended = endOf(child)
  let known: readonly string[] | undefined
  function stop(): void {
    if (known !== undefined) return
    // One that has cleared its environment is known by its parent, and that one is about to end.
    known = markedNow(options.marker)
    void stopGroup(child)
  }
  watch.signal.addEventListener('abort', stop, { once: true })

  let silent = 0
  let held = 0
  let bug: { readonly error: unknown } | undefined
  async function read(stream: Readable, take: (line: string) => void): Promise<void> {
    const lines = splitLines(LINE_MOST, (line) => {
      if (bug !== undefined) return
      try {
        take(line)
      } catch (error) {
        bug = { error }
        stop()
      }
    })
    try {
      for await (const chunk of stream) {
        lines.push(chunk)
        held++
        await watch.ready()
        held--
        silent = 0
      }
    } catch {
      // The pipe was given up below; what came is kept.
    }
    lines.end()
  }
  const streams = Promise.all([read(child.stdout, watch.line), read(child.stderr, watch.aside)])

  const end = await ended
  watch.signal.removeEventListener('abort', stop)
  signalGroup(child, 'SIGKILL')
  endHolders(known ?? [])
  // Where no descriptors are left to look, it is looked for again at the end of the session.
  await endMarked(options.marker).catch(() => 0)
  // Somebody whom no sweep has found may hold them open for good.
  const look = setInterval(() => {
    if (held > 0 || ++silent < SILENT_LOOKS) return
    child.stdout.destroy()
    child.stderr.destroy()
  }, LOOK_MS)
  await streams
  clearInterval(look)
  if (bug !== undefined) throw bug.error
  return end
}

function endOf(child: Child): Promise<ProcessEnd> {
  const { promise, resolve } = Promise.withResolvers<ProcessEnd>()
  child.on('error', (error) => {
    if (child.pid === undefined) resolve(notStarted(error))
  })
  child.on('exit', (code, by) => {
    resolve({ code: code ?? 128 + (by === null ? 0 : constants.signals[by]), problem: null })
  })
  return promise
}

function notStarted(error: unknown): ProcessEnd {
  return { code: null, problem: `the agent could not be started: ${messageOf(error)}` }
}
