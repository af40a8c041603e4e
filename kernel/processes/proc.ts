import { randomUUID } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'

/** The field of `statOf` that says when a process started, in ticks since the boot. */
const START = 19

/** Whether processes can be seen at all: some containers have no `/proc`. */
export function seesProcesses(): boolean {
  return existsSync('/proc/self/stat')
}

/** The ids of the processes of this machine. */
export function processIds(): readonly number[] {
  if (!seesProcesses()) return []
  const names = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return names.map(Number)
}

/** The processes of this machine. Of their states, `Z` has ended and waits for its parent. */
export function listProcesses() {
  return processIds()
    .map((pid) => {
      const [state = '', parent, , session] = statOf(pid)
      return { pid, state, parent: Number(parent), session: Number(session) }
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

/** What a process has open; nothing if it is gone or another user's. */
export function openFilesOf(pid: number): readonly string[] {
  const folder = `/proc/${pid}/fd`
  const names = attempt(() => readdirSync(folder)) ?? []
  return names.map((name) => followLink(`${folder}/${name}`) ?? '')
}
