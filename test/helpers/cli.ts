import { exitOf, spawnProgram } from './program.ts'
import type { Env } from './program.ts'
import { transcript } from './transcript.ts'

/** How to run a command. */
export type CliOptions = {
  env?: Env
  /** Standard input; empty when absent. */
  input?: string | Uint8Array
  /** Its stdout shows a secret by design: keep it out of the transcript. */
  secretShown?: boolean
  /** Program instead of `node server.ts`. */
  program?: readonly string[]
  /** Limit for the whole run, 60 s when absent. */
  limitMs?: number
}

/** What a command left behind; `code` is null when a signal ended it. */
export type CliResult = { code: number | null; stdout: string; stderr: string }

const LIMIT_MS = 60_000

/** Runs `node server.ts ARGS…` to its end, `limitMs` at most. */
export async function runCli(
  args: readonly string[],
  options: CliOptions = {},
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
  transcript('log', options.secretShown === true ? stderr : stdout + stderr, 'cli')
  if (late) throw new Error(`'${args[0]}' did not end within ${limitMs} ms; it said: ${stderr}`)
  return { code, stdout, stderr }
}
