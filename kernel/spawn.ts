import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

/** The variable in the environment of every process that a session starts; children inherit it. */
export const MARKER = 'OPS_SESSION'

const SWEEPS = 20
const PAUSE_MS = 25

/** The boot and process namespace of this machine: only within it a process id means something. */
export function machineId(): string {
  return `${readBoot()} ${readNamespace()}`
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
 * made bears it as well. Gives how many were found.
 */
export async function endMarked(marker: string): Promise<number> {
  const ended = new Set<number>()
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const pids = findMarked(marker)
    if (pids.length === 0) break
    for (const pid of pids) {
      ended.add(pid)
      endProcess(pid)
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
  }
  return ended.size
}

/** The processes that bear a marker, but this one; only those of the same user can be seen. */
export function findMarked(marker: string): readonly number[] {
  const wanted = `${MARKER}=${marker}`
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((pid) => environmentOf(pid).includes(wanted) && stateOf(Number(pid)) !== 'Z')
    .map(Number)
}

function endProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // ESRCH: it has just ended by itself.
  }
}

function environmentOf(pid: string): readonly string[] {
  return read(`/proc/${pid}/environ`).split('\0')
}

/** When a process started, in ticks since the boot; undefined when there is no such process. */
function startOf(pid: number): string | undefined {
  return statOf(pid)[19]
}

function stateOf(pid: number): string | undefined {
  return statOf(pid)[0]
}

/** The fields of `/proc/PID/stat` after the name, which may hold spaces and parentheses itself. */
function statOf(pid: number): readonly string[] {
  const stat = read(`/proc/${pid}/stat`)
  return stat === '' ? [] : stat.slice(stat.lastIndexOf(')') + 2).split(' ')
}

function readBoot(): string {
  return read('/proc/sys/kernel/random/boot_id').trim()
}

function readNamespace(): string {
  try {
    return readlinkSync('/proc/self/ns/pid')
  } catch {
    // No such link: process ids are then taken for the machine's.
    return ''
  }
}

/** Text of a file of the kernel; empty when the process is gone or another user's. */
function read(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}
