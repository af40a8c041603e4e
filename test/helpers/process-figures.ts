import { readFileSync, readdirSync, readlinkSync } from 'node:fs'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import type { Owner } from './owner.ts'

/** Resident memory of a process in KiB, by Linux's /proc. */
export function residentKib(pid: number): number {
  return statusKib(pid, 'VmRSS')
}

/** Of it what no file stands behind, in KiB: pages of the program's own file count as the page cache happens to hold it. */
export function anonymousKib(pid: number): number {
  return statusKib(pid, 'RssAnon')
}

/** What /proc/PID/stat says behind the program's name: state, parent, … Throws when the process is gone. */
export function statFields(pid: number): readonly string[] {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  // The name stands in brackets and may hold spaces and brackets: count from behind the last one.
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
}

/** Its child processes. */
export function childrenOf(pid: number): readonly number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
  return text.split(' ').filter(Boolean).map(Number)
}

/** Whether a process runs; one that has ended may still be listed until somebody collects it. */
export function isRunning(pid: number): boolean {
  try {
    return statFields(pid)[0] !== 'Z'
  } catch {
    return false
  }
}

/** How many file descriptors a process has open. */
export function openDescriptors(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length
}

/** How many of them are sockets: what clients cost, apart from the embedded database's files. */
export function openSocketCount(pid: number): number {
  const folder = `/proc/${pid}/fd`
  return readdirSync(folder).filter((fd) => isSocket(`${folder}/${fd}`)).length
}

/** How many file descriptors a process may open. */
export function descriptorLimit(pid: number | 'self'): number {
  return Number(/^Max open files\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/limits`, 'utf8'))?.[1])
}

function isSocket(link: string): boolean {
  try {
    return readlinkSync(link).startsWith('socket:')
  } catch {
    // It was closed since the folder was read.
    return false
  }
}

function statusKib(pid: number, name: string): number {
  const text = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(text)?.[1])
}

/** A connection that a test holds open, and what came on it. */
export type HeldSocket = {
  readonly socket: Socket
  /** The start of what came, 4 KiB at most. */
  readonly text: string
  /** The other side has ended it, in whichever way. */
  readonly closed: boolean
}

/** Opens connections, `atOnce` at a time, each with `first` sent; they are destroyed with the test. */
export async function openSockets(
  t: Owner,
  port: number,
  count: number,
  { first = '', atOnce = 100 }: { first?: string | Uint8Array; atOnce?: number } = {},
): Promise<readonly HeldSocket[]> {
  const held: HeldSocket[] = []
  t.teardown(() => {
    for (const { socket } of held) socket.destroy()
  })
  while (held.length < count) {
    const batch = Array.from({ length: Math.min(atOnce, count - held.length) }, () =>
      openSocket(port, first),
    )
    held.push(...(await Promise.all(batch)))
  }
  return held
}

function openSocket(port: number, first: string | Uint8Array): Promise<HeldSocket> {
  const opened = Promise.withResolvers<HeldSocket>()
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  const one = { socket, text: '', closed: false }
  socket.setEncoding('latin1').on('data', (more: string) => {
    if (one.text.length < 4_096) one.text += more
  })
  // A reset is an end like any other here.
  socket.on('error', () => undefined)
  socket.on('close', () => {
    one.closed = true
    opened.resolve(one)
  })
  socket.on('connect', () => {
    if (first.length > 0) socket.write(first)
    opened.resolve(one)
  })
  return opened.promise
}

const TICKS_PER_SECOND = 100

/** Processor time of this process and of all processes that have ended below it, in seconds. */
export function cpuSecondsSoFar(): number {
  // utime, stime, cutime and cstime of proc(5).
  const times = statFields(process.pid).slice(11, 15)
  return times.reduce((total, ticks) => total + Number(ticks), 0) / TICKS_PER_SECOND
}
