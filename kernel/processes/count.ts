import { realpathSync } from 'node:fs'
import { basename } from 'node:path'
import { attempt, followLink, listProcesses, readProc } from './proc.ts'

/** How many bytes of a program's name the kernel keeps. */
const NAME_BYTES = 15

type ProcessFilter = { [by in 'match' | 'program']?: string }

/** Counts the other processes that run a program and have a text in their command line. */
export function countProcesses({ match, program }: ProcessFilter): number {
  return listProcesses().filter(({ pid }) => {
    const commandLine = readProc(`/proc/${pid}/cmdline`).replaceAll('\0', ' ')
    return (
      pid !== process.pid &&
      (match === undefined || commandLine.includes(match)) &&
      (program === undefined || runsProgram(pid, program))
    )
  }).length
}

/**
 * Whether a process runs the executable with this path or name. Only the first 15 bytes of the
 * name are known of another user's process. An interpreter also has the name of its script.
 */
function runsProgram(pid: number, program: string): boolean {
  const executable = followLink(`/proc/${pid}/exe`)?.replace(/ \(deleted\)$/, '')
  if (program.startsWith('/') && executable !== undefined) {
    return executable === program || executable === attempt(() => realpathSync(program))
  }
  const name = basename(program)
  const known = readProc(`/proc/${pid}/comm`).trimEnd()
  const own = executable === undefined ? undefined : basename(executable)
  if (own === name) return true
  // The kernel's name is the cut name of the executable: the whole one was compared above.
  if (own !== undefined && cutName(own) === known) return false
  return cutName(name) === known
}

function cutName(name: string): string {
  return Buffer.from(name).subarray(0, NAME_BYTES).toString()
}
