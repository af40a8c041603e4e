import { randomUUID } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'

/**
 * The variable in the environment of every process that is started with a marker; descendants
 * inherit it. A `gatehouse` among them does not take it for a variable of its configuration.
 */
export const MARKER = 'STARTED_BY_GATEHOUSE'

/** Sweeps go on until nothing is found, a few seconds at most. */
const MAX_SWEEPS = 200
const PAUSE_MS = 25
/** One sweep may miss a process that is just being created. */
const CLEAR_SWEEPS = 2
/** The field of `statOf` that says when a process started, in ticks since the boot. */
const START = 19

/** Whether processes can be seen at all: some containers have no `/proc`. */
export function seesProcesses(): boolean {
  return existsSync('/proc/self/stat')
}

/** The processes of this machine. Of their states, `Z` has ended and waits for its parent. */
export function listProcesses() {
  if (!seesProcesses()) return []
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => {
      const [state = '', parent, , session] = statOf(Number(name))
      return { pid: Number(name), state, parent: Number(parent), session: Number(session) }
    })
    .filter(({ state }) => state !== '')
}

/** The environment that a process was started with; empty if it is gone or another user's. */
export function environmentOf(pid: number | 'self'): readonly string[] {
  return readProc(`/proc/${pid}/environ`).split('\0')
}

/**
 * The boot and process namespace of this machine: a process id has a meaning only within it.
 * Without `/proc`, every process counts as a machine of its own.
 */
export function machineId(): string {
  if (!seesProcesses()) return randomUUID()
  const boot = readProc('/proc/sys/kernel/random/boot_id').trim()
  // Without the link, process ids are those of the machine.
  return `${boot} ${followLink('/proc/self/ns/pid') ?? ''}`
}

/** Names a process, this one unless another is given, by id and start time: ids are used again. */
export function holderOf(pid: number = process.pid): string {
  return `${pid}/${statOf(pid)[START] ?? '0'}`
}

/** Whether the process that `holderOf` named on this machine still lives. */
export function isAlive(holder: string): boolean {
  const [pid = '', started] = holder.split('/')
  return /^\d+$/.test(pid) && statOf(Number(pid))[START] === started
}

/** The fields of `/proc/PID/stat` after the name, which may itself have spaces and parentheses. */
function statOf(pid: number): readonly string[] {
  const stat = readProc(`/proc/${pid}/stat`)
  return stat === '' ? [] : stat.slice(stat.lastIndexOf(')') + 2).split(' ')
}

/** The target of a symbolic link; undefined if it is missing or another user's. */
export function followLink(path: string): string | undefined {
  return attempt(() => readlinkSync(path))
}

/** The text of a file in `/proc`; empty if the process is gone or another user's. */
export function readProc(path: string): string {
  return attempt(() => readFileSync(path, 'utf8')) ?? ''
}

/** Undefined where the system refuses, mostly because a process has ended. */
export function attempt<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch {
    return undefined
  }
}

/**
 * Kills every process that carries a marker, with SIGKILL. Rejects if there are no file
 * descriptors left.
 */
export async function endMarked(marker: string): Promise<void> {
  for (let sweep = 0, clear = 0; sweep < MAX_SWEEPS && clear < CLEAR_SWEEPS; sweep++) {
    if (sweep > 0) await new Promise((resolve) => setTimeout(resolve, clear > 0 ? PAUSE_MS : 1))
    const pids = findMarked(carrying(marker), process.pid)
    clear = pids.length === 0 ? clear + 1 : 0
    for (const pid of pids) kill(pid)
  }
}

function carrying(marker: string) {
  const wanted = `${MARKER}=${marker}`
  return (variable: string) => variable === wanted
}

/** Whether a variable of an environment is a marker, whichever. */
function isMarker(variable: string): boolean {
  return variable.startsWith(`${MARKER}=`)
}

/**
 * The processes of this user that carry a marker, except one. A process that has cleared its
 * environment is found as long as its parent or its terminal session is.
 */
function findMarked(isWanted: (variable: string) => boolean, except?: number): readonly number[] {
  const others = listProcesses().filter(({ pid, state }) => pid !== except && state !== 'Z')
  const found = new Set<number>()
  const sessions = new Set<number>()
  let more = others.filter(({ pid }) => environmentOf(pid).some(isWanted))
  while (more.length > 0) {
    for (const { pid, session } of more) {
      found.add(pid)
      // Only a session that one of them leads, not the one that this process belongs to.
      if (session === pid) sessions.add(session)
    }
    const rest = others.filter(({ pid }) => !found.has(pid))
    more = rest.filter(({ parent, session }) => found.has(parent) || sessions.has(session))
  }
  return [...found]
}

/**
 * The processes that carry a marker now, as `holderOf` names them; none if there are no file
 * descriptors left.
 */
export function markedNow(marker: string): readonly string[] {
  return attempt(() => findMarked(carrying(marker), process.pid).map(holderOf)) ?? []
}

/** Whether this process, or one that has started it, carries a marker, whichever. */
export function isMarked(): boolean {
  return process.env[MARKER] !== undefined || findMarked(isMarker).includes(process.pid)
}

/**
 * Who has the other end of a TCP connection, by the port of each end. `marked`: a process of this
 * machine that carries a marker, or was started by one that does. `none`: no process of this
 * machine. Undefined where that can't be seen, such as for another user's process.
 */
export function peerProcess(port: number, ownPort: number): 'marked' | 'none' | undefined {
  const tables = ['/proc/net/tcp', '/proc/net/tcp6'].map(readProc)
  const rows = tables.flatMap((table) => table.split('\n').map((row) => row.trim().split(/\s+/)))
  const sockets = rows.flatMap(([, local = '', remote = '', , , , , , , inode = '']) => {
    return /^[1-9]\d*$/.test(inode) ? [{ local, remote, file: `socket:[${inode}]` }] : []
  })
  if (sockets.length === 0) return undefined
  const [end, ownEnd] = [port, ownPort].map((one) => {
    return `:${one.toString(16).toUpperCase().padStart(4, '0')}`
  }) as [string, string]
  const ends = sockets.filter(
    ({ local, remote }) => local.endsWith(end) && remote.endsWith(ownEnd),
  )
  if (ends.length === 0) return 'none'
  const files = new Set(ends.map(({ file }) => file))
  const hasEnd = (pid: number) => openFilesOf(pid).some((file) => files.has(file))
  return findMarked(isMarker, process.pid).some(hasEnd) ? 'marked' : undefined
}

/** What a process has open; nothing if it is gone or another user's. */
function openFilesOf(pid: number): readonly string[] {
  const folder = `/proc/${pid}/fd`
  const names = attempt(() => readdirSync(folder)) ?? []
  return names.map((name) => followLink(`${folder}/${name}`) ?? '')
}

/** Kills those of the processes that still live. */
export function endHolders(holders: readonly string[]): void {
  for (const holder of holders) if (isAlive(holder)) kill(Number.parseInt(holder, 10))
}

/** Sends a signal to a process, or to a group by its negative id, unless it has ended already. */
export function kill(pid: number, signal: NodeJS.Signals = 'SIGKILL'): void {
  attempt(() => process.kill(pid, signal))
}
