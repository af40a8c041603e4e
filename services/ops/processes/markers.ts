import { environmentOf, holderOf, isAlive, listProcesses } from './proc.ts'

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

/** An operation has a marker of its own, because what it starts may outlive its session. */
export function operationMarker(session: string, action: number): string {
  return `${session}/${action}`
}

/**
 * Kills every process that carries a marker, with SIGKILL. Rejects if there are no file descriptors
 * left.
 */
export async function endMarked(marker: string): Promise<void> {
  for (let sweep = 0, clear = 0; sweep < MAX_SWEEPS && clear < CLEAR_SWEEPS; sweep++) {
    if (sweep > 0) await new Promise((resolve) => setTimeout(resolve, clear > 0 ? PAUSE_MS : 1))
    const pids = findMarked(marker)
    clear = pids.length === 0 ? clear + 1 : 0
    for (const pid of pids) kill(pid)
  }
}

/**
 * The processes of this user that carry a marker, except this one. A process that has cleared its
 * environment is found as long as its parent or its terminal session is.
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
      // Only a session that one of them leads, not the one that this process belongs to.
      if (session === pid) sessions.add(session)
    }
    more = others.filter(
      ({ pid, parent, session }) => !found.has(pid) && (found.has(parent) || sessions.has(session)),
    )
  }
  return [...found]
}

/**
 * The processes that carry a marker now, as `holderOf` names them; none if there are no file
 * descriptors left.
 */
export function markedNow(marker: string): readonly string[] {
  try {
    return findMarked(marker).map(holderOf)
  } catch {
    return []
  }
}

/** Kills those of the processes that still live. */
export function endHolders(holders: readonly string[]): void {
  for (const holder of holders) if (isAlive(holder)) kill(Number.parseInt(holder, 10))
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // ESRCH: it has ended already.
  }
}
