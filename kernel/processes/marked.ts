import {
  attempt,
  environmentOf,
  holderOf,
  isAlive,
  listProcesses,
  openFilesOf,
  processIds,
  readProc,
} from './proc.ts'

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
  const carriers = new Set(
    processIds().filter((pid) => pid !== except && environmentOf(pid).some(isWanted)),
  )
  // Mostly there are none. States are read only to find the descendants of carriers.
  if (carriers.size === 0) return []
  const others = listProcesses().filter(({ pid, state }) => pid !== except && state !== 'Z')
  const found = new Set<number>()
  const sessions = new Set<number>()
  let more = others.filter(({ pid }) => carriers.has(pid))
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

/** Kills those of the processes that still live. */
export function endHolders(holders: readonly string[]): void {
  for (const holder of holders) if (isAlive(holder)) kill(Number.parseInt(holder, 10))
}

/** Sends a signal to a process, or to a group by its negative id, unless it has ended already. */
export function kill(pid: number, signal: NodeJS.Signals = 'SIGKILL'): void {
  attempt(() => process.kill(pid, signal))
}
