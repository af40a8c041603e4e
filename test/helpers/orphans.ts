import { appendFileSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { statFields } from './process-figures.ts'

const LIST = 'left-behind.ndjson'

type Recorded = { pid: number; started: string } | { path: string }

/** Remembers a process of this run: it is ended also when its test is not there to do it. */
export function recordProcess(folder: string, pid: number): void {
  const started = startTime(pid)
  if (started === undefined) return
  appendFileSync(join(folder, LIST), `${JSON.stringify({ pid, started } satisfies Recorded)}\n`)
}

/** Remembers a folder outside the run's own, to be removed in the same way. */
export function recordFolder(folder: string, path: string): void {
  appendFileSync(join(folder, LIST), `${JSON.stringify({ path } satisfies Recorded)}\n`)
}

/** Ends the recorded processes that still run and removes the recorded folders. */
export function endOrphans(folder: string): void {
  const all = recorded(folder)
  for (const entry of all) if ('pid' in entry) endProcess(entry.pid, entry.started)
  for (const entry of all) {
    if ('path' in entry) rmSync(entry.path, { recursive: true, force: true, maxRetries: 5 })
  }
}

function endProcess(pid: number, started: string): void {
  // A pid is used again by the system; pid and start time together are not.
  if (startTime(pid) !== started) return
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It ended between the look and the signal.
  }
}

function recorded(folder: string): readonly Recorded[] {
  try {
    const lines = readFileSync(join(folder, LIST), 'utf8').trim().split('\n')
    return lines.map((line): Recorded => JSON.parse(line))
  } catch {
    return []
  }
}

/** Clock ticks at which a process started, by Linux's /proc; undefined when it is gone or a zombie. */
function startTime(pid: number): string | undefined {
  try {
    const fields = statFields(pid)
    return fields[0] === 'Z' ? undefined : fields[19]
  } catch {
    return undefined
  }
}
