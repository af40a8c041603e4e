import { spawn } from 'node:child_process'
import type { ChildProcessWithoutNullStreams } from 'node:child_process'
import { join } from 'node:path'
import { recordProcess } from './orphans.ts'
import { runFolder } from './run-folder.ts'

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
export type Env = Readonly<Record<string, string>>

/** How a process ended. */
export type Exit = { code: number | null; signal: NodeJS.Signals | null }

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
  for (const name of ['NODE_COMPILE_CACHE', 'NODE_V8_COVERAGE']) {
    const value = process.env[name]
    if (value !== undefined) base[name] = value
  }
  const variables = Object.entries({ ...base, ...env }).map(([name, value]) => `${name}=${value}`)
  // env -i and not spawn's own option: tap adds its loaders to every environment that spawn is given.
  const child = spawn('env', ['-i', ...variables, ...program, ...args], { cwd: ROOT })
  if (child.pid !== undefined) recordProcess(runFolder(), child.pid)
  return child
}

/** Settles when the process has ended and its output is read; a program that cannot start rejects. */
export function exitOf(child: ChildProcessWithoutNullStreams): Promise<Exit> {
  const ended = Promise.withResolvers<Exit>()
  child.once('error', ended.reject)
  child.once('close', (code, signal) => ended.resolve({ code, signal }))
  return ended.promise
}
