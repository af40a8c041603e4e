import { rmSync } from 'node:fs'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { splitLines } from '../../../../kernel/lines.ts'
import { messageOf } from '../../../../kernel/log.ts'
import { problemOf, runProcess, type ProcessEnd } from '../../../../kernel/processes/run.ts'
import { EVENT_VARIABLES } from '../../variables.ts'
import type { Answer } from './delivery.ts'
import type { ForwardedEvent } from './protocol.ts'

/** How an event is given to a program. */
interface ExecuteOptions {
  /** The program and its arguments. */
  argv: readonly string[]
  /** How long it may run; undefined is without limit. */
  timeoutMs: number | undefined
  /** Aborted to end a running program, which has time to leave. */
  cut: AbortSignal
  /** Aborted when this process exits: nothing of the program stays. */
  kill: AbortSignal
  /** Takes each line that the program writes. */
  print: (line: string) => void
}

/** Characters of a line of output. */
const MAX_LINE = 16_384

/**
 * Runs a program with the event's bytes as its standard input. If it exits with 0, the event is
 * delivered, and what it has started lives on; otherwise its process group is ended.
 */
export async function execute(
  options: ExecuteOptions,
  event: ForwardedEvent,
  body: Buffer,
): Promise<Answer> {
  const started = performance.now()
  const answer = await run(options, event, body).catch((error: unknown) => ({
    status: null,
    detail: `the program was not started: ${messageOf(error)}`,
  }))
  return { ...answer, ms: Math.round(performance.now() - started) }
}

/** Rejects if the file with the headers can't be written. */
async function run(
  { argv, timeoutMs, cut, kill, print }: ExecuteOptions,
  event: ForwardedEvent,
  input: Buffer,
): Promise<Omit<Answer, 'ms'>> {
  // Only this user can read it.
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-event-'))
  const remove = (): void => rmSync(folder, { recursive: true, force: true })
  kill.addEventListener('abort', remove)
  const lines = { stdout: splitLines(MAX_LINE, print), stderr: splitLines(MAX_LINE, print) }
  try {
    const headers = join(folder, 'headers.json')
    await writeFile(headers, JSON.stringify(Object.entries(event.headers ?? {})))
    const end = await runProcess(argv, {
      input,
      env: {
        [EVENT_VARIABLES.id]: String(event.id),
        [EVENT_VARIABLES.type]: event.event_type ?? '',
        [EVENT_VARIABLES.provider]: event.provider,
        [EVENT_VARIABLES.headers]: headers,
      },
      leaves: true,
      timeoutMs,
      signal: cut,
      kill,
      stopSignals: ['SIGTERM', 'SIGKILL'],
      onOutput: (bytes, pipe) => lines[pipe].push(bytes),
    })
    lines.stdout.end()
    lines.stderr.end()
    return answerOf(end)
  } finally {
    kill.removeEventListener('abort', remove)
    remove()
  }
}

function answerOf(end: ProcessEnd): Omit<Answer, 'ms'> {
  const problem = problemOf(end)
  if (problem !== null) return { status: null, detail: `the program ${problem}` }
  const { exitCode } = end
  const detail = exitCode === 0 ? null : `the program exited with ${exitCode}`
  return { status: null, detail, ...(exitCode !== null && { exit_code: exitCode }) }
}
