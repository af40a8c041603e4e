import { spawn, type ChildProcess } from 'node:child_process'
import { dirname } from 'node:path'
import { createInterface } from 'node:readline'
import { ROOT } from '../helpers/program.ts'
import { fileBegun, fileEnded, type FileCost } from './marks.ts'
import { createReportReader, type FileReport, type ReportReader } from './report.ts'

/** How to run test files. */
type FileOptions = {
  /** A file that has not ended by then is killed and has failed. */
  fileSeconds: number
  /** Ends the run early: files that run are killed, the others do not start. */
  signal: AbortSignal
  /** The root of the sources that it tests; this repository's when absent. */
  root?: string
  /** Its environment; that of this process when absent. */
  env?: NodeJS.ProcessEnv
}

/** How to run many: so many `jobs` side by side. */
type PoolOptions = FileOptions & { jobs: number }

/** A file that has ended, `stderr` is what it wrote there. One that was killed costs 0. */
export type FileResult = FileReport &
  FileCost & {
    name: string
    stderr: string
  }

type RunningFile = {
  name: string
  reader: ReportReader
  /** Once its tests have ended. */
  cost?: FileCost
}

const GROUP = 'test/runner/group.ts'
const NO_COST: FileCost = { milliseconds: 0, cpuSeconds: 0 }

/** Files of one folder, in their order, at most so many together. */
export function groupFiles(files: readonly string[], size: number) {
  const groups: string[][] = []
  for (const file of files) {
    const last = groups.at(-1)
    const joins =
      last !== undefined && last.length < size && dirname(last[0] ?? '') === dirname(file)
    if (joins) last.push(file)
    else groups.push([file])
  }
  return groups
}

/** Runs each group in a process of its own and calls back in the order in which files end. */
export async function runGroups(
  groups: readonly (readonly string[])[],
  { jobs, ...options }: PoolOptions,
  onEnd: (result: FileResult) => void,
) {
  const waiting = [...groups]
  const results: FileResult[] = []
  async function work() {
    for (let group = waiting.shift(); group !== undefined; group = waiting.shift()) {
      if (options.signal.aborted) return
      const ended = await runGroup(group, options, onEnd)
      results.push(...ended)
      // The process died in one of them: the next ones get another.
      const left = group.slice(ended.length)
      if (left.length > 0) waiting.unshift(left)
    }
  }
  await Promise.all(Array.from({ length: jobs }, work))
  return results
}

/** Runs one file to its end. */
export async function runFile(name: string, options: FileOptions) {
  const [result] = await runGroup([name], options, () => undefined)
  if (result === undefined) throw new Error(`${name} did not run`)
  return result
}

/**
 * Runs files in one process. Where it dies in one of them, that one has failed and is the last of the results.
 */
async function runGroup(
  files: readonly string[],
  { fileSeconds, signal, root = ROOT, env = process.env }: FileOptions,
  onEnd: (result: FileResult) => void,
) {
  const child = spawn(process.execPath, ['--enable-source-maps', GROUP, ...files], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...env, TAP_TIMEOUT: String(fileSeconds * files.length) },
    // A group of its own: what the files start must end with it.
    detached: true,
  })
  const kill = () => killGroup(child)
  const limit = setTimeout(kill, fileSeconds * 1_000)
  signal.addEventListener('abort', kill, { once: true })
  const exited = Promise.withResolvers<number | null>()
  child.once('error', exited.reject)
  child.once('close', exited.resolve)
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))

  const results: FileResult[] = []
  let file: RunningFile = { name: files[0] ?? '', reader: createReportReader() }
  function end(hasFailed: boolean) {
    const { name, reader, cost = NO_COST } = file
    const report = reader.end(file.cost !== undefined)
    // A file that fails without naming a test, such as one that does not load, is one failure.
    const failed = hasFailed ? Math.max(1, report.failed) : report.failed
    const result = { ...report, ...cost, failed, name, stderr }
    stderr = ''
    results.push(result)
    onEnd(result)
  }
  for await (const line of createInterface({ input: child.stdout })) {
    const begun = fileBegun(line)
    if (begun === undefined) {
      const cost = fileEnded(line)
      if (cost !== undefined) file = { ...file, cost }
      else if (file.cost === undefined) file.reader.write(`${line}\n`)
    } else if (begun !== file.name) {
      end(false)
      file = { name: begun, reader: createReportReader() }
    }
    limit.refresh()
  }
  const code = await exited.promise
  clearTimeout(limit)
  signal.removeEventListener('abort', kill)
  const isExplained = results.some(({ failed }) => failed > 0)
  end(file.cost === undefined || (code !== 0 && !isExplained))
  return results
}

function killGroup({ pid }: ChildProcess) {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch {
    // The group is gone already.
  }
}
