import { spawn, type ChildProcess, type ChildProcessByStdio } from 'node:child_process'
import type { Readable } from 'node:stream'
import { commandLineOf, environmentOf, listProcesses, runsProgram, startOf } from './processes.ts'

/**
 * The variable in the environment of every process that is started with a marker; children inherit it. A
 * `gatehouse` among them takes none of this name for a variable of its configuration.
 */
const MARKER = 'STARTED_BY_GATEHOUSE'

/** Sweeps until nothing is found any more, a few seconds of them. */
const SWEEPS = 200
const PAUSE_MS = 25
/** One sweep may miss a process that is being made right then. */
const CLEAR_SWEEPS = 2

/** What of our environment a process gets: where programs, files and words are, and nothing secret. */
const INHERITED = ['PATH', 'HOME', 'USER', 'LANG', 'LC_ALL', 'TZ', 'TMPDIR', 'XDG_RUNTIME_DIR']
/** How long a process group may take to leave after SIGTERM. */
export const GRACE_MS = 2_000
/** How an agent is stopped; the first two leave it time to say what it has cost. */
const STOP_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGKILL'] as const

export interface SpawnOptions {
  /** By which it and what it starts are found: its session's, or an operation's own. */
  readonly marker?: string | undefined
  readonly cwd?: string
  /** Variables beside the inherited ones. */
  readonly env?: Readonly<Record<string, string>>
  /** Names of further variables of ours that it gets, those that are set. */
  readonly inherit?: readonly string[]
}

/** A process in a group of its own, without standard input. */
export type Child = ChildProcessByStdio<null, Readable, Readable>

/**
 * Starts a program by its argument list: no shell sees it. A failure to start is its `error` event, or is
 * thrown, as for arguments that are too long.
 */
export function startProcess(argv: readonly string[], options: SpawnOptions = {}): Child {
  const [program = '', ...args] = argv
  const inherited = [...INHERITED, ...(options.inherit ?? [])].flatMap((name) => {
    const value = process.env[name]
    return value === undefined ? [] : [[name, value] as const]
  })
  const marked = options.marker === undefined ? {} : { [MARKER]: options.marker }
  const child: ChildProcess = spawn(program, args, {
    cwd: options.cwd,
    env: { ...Object.fromEntries(inherited), ...options.env, ...marked },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  if (hasOutput(child)) return child
  // Without descriptors for its pipes; the event that says so comes later, and nobody else listens for it.
  child.on('error', () => undefined)
  throw new Error(`${program} can't be started: no file descriptors are left`)
}

function hasOutput(child: ChildProcess): child is Child {
  return (child.stdout ?? null) !== null && (child.stderr ?? null) !== null
}

/** Sends a signal to a process and all of its group. */
export function signalGroup(child: Child, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return
  try {
    process.kill(-child.pid, signal)
  } catch {
    // ESRCH: the group is gone.
  }
}

/** Ends a process and its group by SIGINT, SIGTERM and SIGKILL, with time in between to leave. */
export async function stopGroup(child: Child): Promise<void> {
  for (const signal of STOP_SIGNALS) {
    if (child.exitCode !== null || child.signalCode !== null) return
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, GRACE_MS)
    child.once('exit', () => resolve())
    signalGroup(child, signal)
    await promise
    clearTimeout(timer)
  }
}

/** This process, told from a later one with the same id by when it started. */
export function ownHolder(): string {
  return `${process.pid}/${startOf(process.pid) ?? '0'}`
}

/** Whether the process that `ownHolder` named on this machine still lives. */
export function isAlive(holder: string): boolean {
  const [pid = '', started] = holder.split('/')
  return /^\d+$/.test(pid) && startOf(Number(pid)) === started
}

/**
 * Ends every process that bears a marker, by SIGKILL, until none is found: one that is just being
 * made bears it as well. Gives how many were found; rejects where no descriptors are left to look.
 */
export async function endMarked(marker: string): Promise<number> {
  const ended = new Set<number>()
  for (let sweep = 0, clear = 0; sweep < SWEEPS && clear < CLEAR_SWEEPS; sweep++) {
    if (sweep > 0) await new Promise((resolve) => setTimeout(resolve, clear > 0 ? PAUSE_MS : 1))
    const pids = findMarked(marker)
    clear = pids.length === 0 ? clear + 1 : 0
    for (const pid of pids) {
      ended.add(pid)
      endProcess(pid)
    }
  }
  return ended.size
}

/**
 * The processes that bear a marker, but this one; only those of the same user can be seen. One that has
 * cleared its environment belongs to them too while its parent or its terminal session does.
 */
function findMarked(marker: string): readonly number[] {
  const wanted = `${MARKER}=${marker}`
  const others = listProcesses().filter(({ pid, state }) => pid !== process.pid && state !== 'Z')
  const found = new Set<number>()
  const sessions = new Set<number>()
  let more = others.filter(({ pid }) => environmentOf(pid).includes(wanted))
  while (more.length > 0) {
    for (const { pid, session } of more) {
      found.add(pid)
      // A session that one of them leads, not the one that this process was started in.
      if (session === pid) sessions.add(session)
    }
    more = others.filter(
      ({ pid, parent, session }) => !found.has(pid) && (found.has(parent) || sessions.has(session)),
    )
  }
  return [...found]
}

/** Processes that bear a marker now, each in the form of `ownHolder`; none where no descriptors are left to look. */
export function markedNow(marker: string): readonly string[] {
  try {
    return findMarked(marker).map((pid) => `${pid}/${startOf(pid) ?? '0'}`)
  } catch {
    return []
  }
}

/** Ends those that `markedNow` gave and that still live, by SIGKILL. */
export function endHolders(holders: readonly string[]): void {
  for (const holder of holders) if (isAlive(holder)) endProcess(Number.parseInt(holder, 10))
}

/** How many processes but this one have a text in their command line, and run a program. */
export function countProcesses(wanted: {
  readonly match?: string
  readonly program?: string
}): number {
  const { match, program } = wanted
  return listProcesses().filter(
    ({ pid }) =>
      pid !== process.pid &&
      (match === undefined || commandLineOf(pid).includes(match)) &&
      (program === undefined || runsProgram(pid, program)),
  ).length
}

function endProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // ESRCH: it has just ended by itself.
  }
}
