import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process'
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findLeaks, leakMessage } from '../runner/leaks.ts'
import { statFields } from './process-figures.ts'

/** The repository's root. */
export const ROOT = join(import.meta.dirname, '..', '..')

/** Environment variable by which test/run.ts says that the processes of this run live for seconds. */
export const SHORT_LIVES = 'GATEHOUSE_TEST_SHORT_LIVES'

/**
 * Each start of the embedded engine compiles its WebAssembly anew, and the optimising compiler costs more of the
 * processor than it saves a process that lives for seconds. Long runs and the bench have it as users do.
 */
export const ENGINE_FLAGS = process.env[SHORT_LIVES] === undefined ? [] : ['--liftoff-only']

const FROM_SOURCE = [process.execPath, ...ENGINE_FLAGS, 'server.ts']

/** Variables for a process of the product. */
export type Env = Record<string, string>

/** How a process ended. */
export type Exit = { code: number | null; signal: NodeJS.Signals | null }

/** What a process of the product takes from the environment of the tests: measuring tools, and a clock that is set. */
const INHERITED = ['NODE_COMPILE_CACHE', 'NODE_V8_COVERAGE', 'LD_PRELOAD', 'CLOCK_OFFSET']

/**
 * Starts the product (`node server.ts`, or `program`) with `args` in the repository's root. Its
 * environment is clean: what the tests run with must not configure it.
 */
export function spawnProgram(
  args: readonly string[],
  env: Env,
  program: readonly string[] = FROM_SOURCE,
): ChildProcessWithoutNullStreams {
  const base: Record<string, string> = {
    PATH: process.env['PATH'] ?? '/usr/bin:/bin',
    HOME: runFolder(),
  }
  for (const name of INHERITED) {
    const value = process.env[name]
    if (value !== undefined) base[name] = value
  }
  const variables = Object.entries({ ...base, ...env }).map(([name, value]) => `${name}=${value}`)
  // env -i and not spawn's own option: tap adds its loaders to every environment that spawn is given.
  const child = spawn('env', ['-i', ...variables, ...program, ...args], { cwd: ROOT })
  recordChild(child)
  return child
}

/** Settles when the process has ended and its output is read; a program that cannot start rejects. */
export function exitOf(child: ChildProcessWithoutNullStreams) {
  const ended = Promise.withResolvers<Exit>()
  child.once('error', ended.reject)
  child.once('close', (code, signal) => ended.resolve({ code, signal }))
  return ended.promise
}

const LIST = 'left-behind.ndjson'

type Recorded = { pid: number; started: string } | { path: string }

/** Remembers a process of this run: it is ended also when its test is not there to do it. */
export function recordProcess(folder: string, pid: number) {
  const started = startTime(pid)
  if (started === undefined) return
  appendFileSync(join(folder, LIST), `${JSON.stringify({ pid, started } satisfies Recorded)}\n`)
}

/** Remembers a program that a test has started. One that could not start has no process id. */
export function recordChild({ pid }: { pid?: number | undefined }) {
  if (pid !== undefined) recordProcess(runFolder(), pid)
}

/** Remembers a folder outside the run's own, to be removed in the same way. */
export function recordFolder(folder: string, path: string) {
  appendFileSync(join(folder, LIST), `${JSON.stringify({ path } satisfies Recorded)}\n`)
}

/** Ends the recorded processes that still run and removes the recorded folders. */
export function endOrphans(folder: string) {
  const all = recorded(folder)
  for (const entry of all) if ('pid' in entry) endProcess(entry.pid, entry.started)
  for (const entry of all) {
    if ('path' in entry) rmSync(entry.path, { recursive: true, force: true, maxRetries: 5 })
  }
}

function endProcess(pid: number, started: string) {
  // A pid is used again by the system; pid and start time together are not.
  if (startTime(pid) !== started) return
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It ended between the look and the signal.
  }
}

function recorded(folder: string) {
  try {
    const lines = readFileSync(join(folder, LIST), 'utf8').trim().split('\n')
    return lines.map((line): Recorded => JSON.parse(line))
  } catch {
    return []
  }
}

/** Clock ticks at which a process started, by Linux's /proc; undefined when it is gone or a zombie. */
function startTime(pid: number) {
  try {
    const fields = statFields(pid)
    return fields[0] === 'Z' ? undefined : fields[19]
  } catch {
    return undefined
  }
}

/** Environment variable by which test/run.ts hands its folder to every test file. */
export const RUN_FOLDER = 'GATEHOUSE_TEST_FOLDER'

let own: string | undefined

/**
 * The folder that collects this run's transcripts, secrets and process ids. A file that runs alone
 * makes its own, and looks for leaks itself when it ends.
 */
export function runFolder() {
  const given = process.env[RUN_FOLDER]
  if (given !== undefined && given !== '') return given
  if (own !== undefined) return own
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-run-'))
  own = folder
  process.on('exit', () => {
    endOrphans(folder)
    for (const leak of findLeaks(folder)) {
      process.stderr.write(`${leakMessage(leak)}\n`)
      process.exitCode = 1
    }
    rmSync(folder, { recursive: true, force: true })
  })
  return folder
}

/** Environment variable by which `test/run.ts --long` asks for the long form of the faults and keeps calls. */
export const LONG_RUN = 'GATEHOUSE_TEST_LONG_RUN'

type Suite<T> = { test(name: string, body: (t: T) => Promise<unknown>): PromiseLike<unknown> }

/** A sub-test of the long run alone: it takes minutes, or guards what hardly ever changes. */
export async function inLongRun<T>(t: Suite<T>, name: string, body: (t: T) => Promise<unknown>) {
  if (process.env[LONG_RUN] !== undefined) await t.test(name, body)
}

/** How much of a fault: the short form is part of every run, the long one is on demand. */
export function extent<T>(forms: { short: T; long: T }) {
  return process.env[LONG_RUN] === undefined ? forms.short : forms.long
}
