import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { setFlagsFromString } from 'node:v8'
import { runCommandLine } from '../../commands/command-line.ts'
import { createOutput } from '../../commands/command.ts'
import { openProgram } from '../../commands/program.ts'
import { createLog } from '../../kernel/log.ts'
import { ENGINE_FLAGS, exitOf, spawnProgram } from './program.ts'
import type { Env } from './program.ts'
import { runFolder } from './run-folder.ts'
import { transcript } from './transcript.ts'

/** How to run a command. */
export type CliOptions = {
  env?: Env
  /** Standard input; empty when absent. */
  input?: string | Uint8Array
  /** Its stdout shows a secret by design: keep it out of the transcript. */
  secretShown?: boolean
}

/** How to run a command as a process. */
export type CliProcessOptions = CliOptions & {
  /** Program instead of `node server.ts`. */
  program?: readonly string[]
  /** Limit for the whole run, 60 s when absent. */
  limitMs?: number
}

/** What a command left behind; `code` is null when a signal ended it. */
export type CliResult = { code: number | null; stdout: string; stderr: string }

const LIMIT_MS = 60_000

/** How the names of the files end that keep which commands have run, for the list of what a run has reached. */
export const COMMANDS_SUFFIX = '.commands'

/** Keeps that a command has ended: its first words, and its exit code. */
export function recordCommand(args: readonly string[], code: number | null): void {
  const words = args.slice(0, 2).filter((arg) => /^(?:--)?[a-z-]+$/.test(arg))
  const file = join(runFolder(), `${process.pid}${COMMANDS_SUFFIX}`)
  appendFileSync(file, `${words.join(' ')} ${code}\n`)
}

/**
 * Runs a command to its end in this process; `serve` starts the program and closes it at once. What a test needs of a process (signals, umask, a terminal, the
 * streams themselves) has `runCliProcess`.
 */
export async function runCli(
  args: readonly string[],
  { env = {}, input = '', secretShown = false }: CliOptions = {},
): Promise<CliResult> {
  if (env['NODE_OPTIONS'] !== undefined) throw new Error('NODE_OPTIONS needs runCliProcess')
  if (env['DATABASE_URL'] === undefined) {
    for (const flag of ENGINE_FLAGS) setFlagsFromString(flag)
  }
  let [stdout, stderr] = ['', '']
  const writeError = (text: string): unknown => (stderr += text)
  const log = createLog(writeError, () => new Date())
  const code = await runCommandLine(args, {
    environment: { PATH: process.env['PATH'], HOME: runFolder(), ...env },
    input: Readable.from(input.length === 0 ? [] : [Buffer.from(input)]),
    output: createOutput({
      stdout: (text) => (stdout += text),
      stderr: writeError,
      terminal: false,
    }),
    log,
    serve: async (options) => {
      const program = await openProgram(options, new AbortController().signal)
      await program.close(0)
      return 0
    },
    errorPrefix: '',
  })
  log.flush()
  recordCommand(args, code)
  transcript('log', secretShown ? stderr : stdout + stderr, 'cli')
  return { code, stdout, stderr }
}

/** Runs `node server.ts ARGS…` to its end, `limitMs` at most. */
export async function runCliProcess(
  args: readonly string[],
  options: CliProcessOptions = {},
): Promise<CliResult> {
  const { limitMs = LIMIT_MS } = options
  const child = spawnProgram(args, options.env ?? {}, options.program)
  const exited = exitOf(child)
  let [stdout, stderr, late] = ['', '', false]
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  // A command that does not read its input may be gone before it is written.
  child.stdin.on('error', () => undefined)
  child.stdin.end(options.input ?? '')
  const timer = setTimeout(() => {
    late = true
    child.kill('SIGKILL')
  }, limitMs)
  const { code } = await exited.finally(() => clearTimeout(timer))
  recordCommand(args, code)
  transcript('log', options.secretShown === true ? stderr : stdout + stderr, 'cli')
  if (late) throw new Error(`'${args[0]}' did not end within ${limitMs} ms; it said: ${stderr}`)
  return { code, stdout, stderr }
}
