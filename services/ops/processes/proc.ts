import { randomUUID } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs'
import { basename } from 'node:path'

/** The kernel keeps so many bytes of a program's name. */
const NAME_BYTES = 15

/** A process of this machine, as `/proc` shows it. */
export interface ProcessEntry {
  readonly pid: number
  /** One letter; `Z` has ended and waits for its parent. */
  readonly state: string
  readonly parent: number
  readonly session: number
}

/** Whether processes can be seen at all: some containers have no `/proc`. */
export function seesProcesses(): boolean {
  return existsSync('/proc/self/stat')
}

export function listProcesses(): readonly ProcessEntry[] {
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
export function environmentOf(pid: number): readonly string[] {
  return read(`/proc/${pid}/environ`).split('\0')
}

/** The command line of a process, its words separated by spaces. */
function commandLineOf(pid: number): string {
  return read(`/proc/${pid}/cmdline`).replaceAll('\0', ' ')
}

/**
 * Whether a process runs the executable with this path or name. Only the first 15 bytes of the name
 * are known of another user's process. An interpreter also has the name of its script.
 */
function runsProgram(pid: number, program: string): boolean {
  const executable = followLink(`/proc/${pid}/exe`)?.replace(/ \(deleted\)$/, '')
  if (program.startsWith('/') && executable !== undefined) {
    return executable === program || executable === realPath(program)
  }
  const name = basename(program)
  const known = read(`/proc/${pid}/comm`).trimEnd()
  const own = executable === undefined ? undefined : basename(executable)
  if (own === name) return true
  // The kernel's name is the cut name of the executable: the whole one was compared above.
  if (own !== undefined && cutName(own) === known) return false
  return cutName(name) === known
}

function cutName(name: string): string {
  return Buffer.from(name).subarray(0, NAME_BYTES).toString()
}

/** When a process started, in ticks since the boot; undefined if there is no such process. */
function startOf(pid: number): string | undefined {
  return statOf(pid)[19]
}

/**
 * The boot and process namespace of this machine: a process id has a meaning only within it.
 * Without `/proc`, every process counts as a machine of its own.
 */
export function machineId(): string {
  if (!seesProcesses()) return randomUUID()
  // Without the link, process ids are those of the machine.
  return `${read('/proc/sys/kernel/random/boot_id').trim()} ${followLink('/proc/self/ns/pid') ?? ''}`
}

/** Whether a hardened systemd unit runs this process: one without new privileges. */
export function isHardened(): boolean {
  const ofSystemd = read('/proc/self/environ')
    .split('\0')
    .some((one) => one.startsWith('INVOCATION_ID='))
  return ofSystemd && /^NoNewPrivs:\s*1$/m.test(read('/proc/self/status'))
}

/** Whether `/proc` shows only the processes of this user (`hidepid`, systemd's `ProtectProc`). */
export function hidesProcesses(): boolean {
  return read('/proc/1/cmdline') === ''
}

/** This process, as `holderOf` names it. */
export function ownHolder(): string {
  return holderOf(process.pid)
}

/** Names a process by id and start time: ids are used again. */
export function holderOf(pid: number): string {
  return `${pid}/${startOf(pid) ?? '0'}`
}

/** Whether the process that `holderOf` named on this machine still lives. */
export function isAlive(holder: string): boolean {
  const [pid = '', started] = holder.split('/')
  return /^\d+$/.test(pid) && startOf(Number(pid)) === started
}

/** Counts the other processes that run a program and have a text in their command line. */
export function countProcesses({
  match,
  program,
}: {
  readonly match?: string
  readonly program?: string
}): number {
  return listProcesses().filter(
    ({ pid }) =>
      pid !== process.pid &&
      (match === undefined || commandLineOf(pid).includes(match)) &&
      (program === undefined || runsProgram(pid, program)),
  ).length
}

/** The fields of `/proc/PID/stat` after the name, which may itself have spaces and parentheses. */
function statOf(pid: number): readonly string[] {
  const stat = read(`/proc/${pid}/stat`)
  return stat === '' ? [] : stat.slice(stat.lastIndexOf(')') + 2).split(' ')
}

/** Where a link leads; undefined if there is none, or it is another user's. */
function followLink(path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch {
    return undefined
  }
}

/** A path without symbolic links; undefined if there is no such file. */
function realPath(path: string): string | undefined {
  try {
    return realpathSync(path)
  } catch {
    return undefined
  }
}

/** The text of a file in `/proc`; empty if the process is gone or another user's. */
function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
