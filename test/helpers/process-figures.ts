import { readFileSync, readdirSync } from 'node:fs'

/** Resident memory of a process in KiB, by Linux's /proc. */
export function residentKib(pid: number) {
  return statusKib(pid, 'VmRSS')
}

/** Of it what no file stands behind, in KiB: pages of the program's own file count as the page cache happens to hold it. */
export function anonymousKib(pid: number) {
  return statusKib(pid, 'RssAnon')
}

/** What /proc/PID/stat says behind the program's name: state, parent, … Throws when the process is gone. */
export function statFields(pid: number) {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  // The name stands in brackets and may hold spaces and brackets: count from behind the last one.
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
}

/** Its child processes. */
export function childrenOf(pid: number) {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
  return text.split(' ').filter(Boolean).map(Number)
}

/** Whether a process runs; one that has ended may still be listed until somebody collects it. */
export function isRunning(pid: number) {
  try {
    return statFields(pid)[0] !== 'Z'
  } catch {
    return false
  }
}

/** How many file descriptors a process has open. */
export function openDescriptors(pid: number) {
  return readdirSync(`/proc/${pid}/fd`).length
}

function statusKib(pid: number, name: string) {
  const text = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(text)?.[1])
}

const TICKS_PER_SECOND = 100

/** Processor time of this process and of all processes that have ended below it, in seconds. */
export function cpuSecondsSoFar() {
  // utime, stime, cutime and cstime of proc(5).
  const times = statFields(process.pid).slice(11, 15)
  return times.reduce((total, ticks) => total + Number(ticks), 0) / TICKS_PER_SECOND
}
