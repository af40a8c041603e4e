import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { ROOT } from '../helpers/program.ts'
import { createReportReader } from './report.ts'
import type { FileReport } from './report.ts'

/** How to run a test file. */
export type FileOptions = {
  /** A file that has not ended by then is killed and has failed. */
  readonly fileSeconds: number
  /** Ends the run early: files that run are killed, the others do not start. */
  readonly signal: AbortSignal
  /** The root of the sources that it tests; this repository's when absent. */
  readonly root?: string
  /** Its environment; that of this process when absent. */
  readonly env?: NodeJS.ProcessEnv
}

/** How to run test files; so many `jobs` side by side. */
export type PoolOptions = FileOptions & { readonly jobs: number }

/** A file that has ended; `stderr` is what it wrote there. */
export type FileResult = FileReport & {
  readonly name: string
  readonly stderr: string
  readonly milliseconds: number
  /** Processor time of the file and of the processes that it waited for; 0 when it was killed. */
  readonly cpuSeconds: number
}

/** Runs each file in a process of its own and calls back in the order in which they end. */
export async function runFiles(
  files: readonly string[],
  { jobs, ...options }: PoolOptions,
  onEnd: (result: FileResult) => void,
): Promise<readonly FileResult[]> {
  const waiting = [...files]
  const results: FileResult[] = []
  async function work(): Promise<void> {
    for (let file = waiting.shift(); file !== undefined; file = waiting.shift()) {
      if (options.signal.aborted) return
      const result = await runFile(file, options)
      results.push(result)
      onEnd(result)
    }
  }
  await Promise.all(Array.from({ length: jobs }, work))
  return results
}

/** Runs a program and then prints, on descriptor 3, the processor time of what the shell has waited for. */
const MEASURED = '"$0" "$@"; code=$?; times >&3; exit $code'

/** Runs one file to its end. */
export async function runFile(
  name: string,
  { fileSeconds, signal, root = ROOT, env = process.env }: FileOptions,
): Promise<FileResult> {
  const started = performance.now()
  const child = spawn('sh', ['-c', MEASURED, process.execPath, '--enable-source-maps', name], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    env: { ...env, TAP_TIMEOUT: String(fileSeconds) },
    // A group of its own: what the file starts must end with it.
    detached: true,
  })
  const reader = createReportReader()
  let [stderr, times] = ['', '']
  child.stdout?.setEncoding('utf8').on('data', reader.write)
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  child.stdio[3]?.on('data', (bytes: Buffer) => (times += bytes.toString()))
  const limit = AbortSignal.any([signal, AbortSignal.timeout(fileSeconds * 1_000)])
  const kill = (): void => killGroup(child)
  limit.addEventListener('abort', kill, { once: true })
  const ended = Promise.withResolvers<number | null>()
  child.once('error', ended.reject)
  child.once('close', ended.resolve)
  const code = await ended.promise
  limit.removeEventListener('abort', kill)
  const report = reader.end()
  // A file that fails without naming a test, such as one that does not load, is one failure.
  const failed = code === 0 ? report.failed : Math.max(1, report.failed)
  const milliseconds = performance.now() - started
  return { ...report, failed, name, stderr, milliseconds, cpuSeconds: cpuSecondsOf(times) }
}

/** Adds up what `times` of a POSIX shell prints: user and system time of the shell and of its children. */
export function cpuSecondsOf(times: string): number {
  let seconds = 0
  for (const [, minutes, rest] of times.matchAll(/(\d+)m([\d.]+)s/g)) {
    seconds += Number(minutes) * 60 + Number(rest)
  }
  return seconds
}

function killGroup({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch {
    // The group is gone already.
  }
}
