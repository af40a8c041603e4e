import { randomUUID } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs'
import { basename } from 'node:path'

/** Bytes of a program's name that the kernel keeps. */
const NAME_BYTES = 15

/** A process of this machine, as `/proc` shows it. */
export interface ProcessEntry {
  readonly pid: number
  /** One letter; `Z` is one that has ended and waits for its parent to look. */
  readonly state: string
  readonly parent: number
  readonly session: number
}

/** Whether processes can be seen at all: not in a root directory of one's own without `/proc`. */
export function seesProcesses(): boolean {
  return existsSync('/proc/self/stat')
}

/** Every process that can be seen. */
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

/** The environment that a process was started with; empty when it is gone or another user's. */
export function environmentOf(pid: number): readonly string[] {
  return read(`/proc/${pid}/environ`).split('\0')
}

/** The command line of a process, its words parted by spaces. */
export function commandLineOf(pid: number): string {
  return read(`/proc/${pid}/cmdline`).replaceAll('\0', ' ')
}

/**
 * Whether a process runs the executable with this path or name. Of another user's process only the name is
 * known, of which the kernel keeps 15 bytes. An interpreter also has the name of its script.
 */
export function runsProgram(pid: number, program: string): boolean {
  const executable = followLink(`/proc/${pid}/exe`)?.replace(/ \(deleted\)$/, '')
  if (program.startsWith('/') && executable !== undefined) {
    return executable === program || executable === realPath(program)
  }
  const name = basename(program)
  const known = read(`/proc/${pid}/comm`).trimEnd()
  const own = executable === undefined ? undefined : basename(executable)
  if (own === name) return true
  // The kernel's name is that of the executable, cut: the whole one has just been compared.
  if (own !== undefined && cutName(own) === known) return false
  return cutName(name) === known
}

function cutName(name: string): string {
  return Buffer.from(name).subarray(0, NAME_BYTES).toString()
}

/** When a process started, in ticks since the boot; undefined when there is no such process. */
export function startOf(pid: number): string | undefined {
  return statOf(pid)[19]
}

/**
 * The boot and process namespace of this machine: only within it a process id means something. Where
 * nothing tells machines apart, each process is on one of its own.
 */
export function machineId(): string {
  if (!seesProcesses()) return randomUUID()
  // Without the link process ids are taken for the machine's.
  return `${read('/proc/sys/kernel/random/boot_id').trim()} ${followLink('/proc/self/ns/pid') ?? ''}`
}

/** Whether systemd runs this process, and has forbidden it new privileges, as a hardened unit does. */
export function isHardened(): boolean {
  const ofSystemd = read('/proc/self/environ')
    .split('\0')
    .some((one) => one.startsWith('INVOCATION_ID='))
  return ofSystemd && /^NoNewPrivs:\s*1$/m.test(read('/proc/self/status'))
}

/** Whether `/proc` shows this process those of its own user only (`hidepid`, systemd's `ProtectProc`). */
export function hidesProcesses(): boolean {
  return read('/proc/1/cmdline') === ''
}

/** The fields of `/proc/PID/stat` after the name, which may hold spaces and parentheses itself. */
function statOf(pid: number): readonly string[] {
  const stat = read(`/proc/${pid}/stat`)
  return stat === '' ? [] : stat.slice(stat.lastIndexOf(')') + 2).split(' ')
}

/** Where a link leads; undefined when there is none, or it is another user's. */
function followLink(path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch {
    return undefined
  }
}

/** A path without symbolic links, such as `/usr/bin/python3`; undefined when there is no such file. */
function realPath(path: string): string | undefined {
  try {
    return realpathSync(path)
  } catch {
    return undefined
  }
}

/** Text of a file of the kernel; empty when the process is gone or another user's. */
function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
