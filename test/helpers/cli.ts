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
}

/** What a command left behind; `code` is null when a signal ended it. */
export type CliResult = { code: number | null; stdout: string; stderr: string }

const LIMIT_MS = 60_000

/** Runs `node server.ts ARGS…` to its end, 60 s at most. */
export async function runCli(
  args: readonly string[],
  options: CliOptions = {},
): Promise<CliResult> {
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
  }, LIMIT_MS)
  const { code } = await exited.finally(() => clearTimeout(timer))
  transcript('log', options.secretShown === true ? stderr : stdout + stderr, 'cli')
  if (late) throw new Error(`'${args[0]}' did not end within ${LIMIT_MS} ms; it said: ${stderr}`)
  return { code, stdout, stderr }
}
