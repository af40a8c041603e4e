import type { Log } from '../../../kernel/log.ts'
import { runCommand, type CommandResult } from '../../../kernel/run-command.ts'
import { withNote } from '../hardening.ts'
import type { ToolContext } from './tool.ts'

/** Everything can be read and nothing written; without new privileges, and gone with its parent. */
const BWRAP = [
  ...['bwrap', '--ro-bind', '/', '/', '--dev', '/dev', '--tmpfs', '/tmp'],
  ...['--cap-drop', 'ALL', '--unshare-ipc', '--new-session', '--die-with-parent', '--'],
]
const PROBE_MS = 5_000
const TIMEOUT_MS = 60_000

/** Whether bwrap can make a sandbox, once that is known; it stays so for as long as the process lives. */
let works: boolean | undefined

/**
 * Runs a command that only looks, as a process of the session: within bwrap where that is installed
 * and allowed to make a sandbox, else as it is. While it is not known which, it does not run.
 */
export async function runLooking(
  argv: readonly string[],
  { job: { marker, signal }, log }: Pick<ToolContext, 'job' | 'log'>,
): Promise<CommandResult> {
  const unknown = works === undefined ? await probe(log) : undefined
  if (unknown !== undefined) {
    const problem = `it was not run, as whether it can be sandboxed is not known yet: ${unknown}`
    return { code: null, output: '', problem, missing: null }
  }
  const sandboxed = works ? [...BWRAP, ...argv] : argv
  return runCommand(sandboxed, { timeoutMs: TIMEOUT_MS, marker, signal })
}

/**
 * Finds out whether bwrap can make a sandbox; where it is installed and can't, the log says why. What says
 * neither yes nor no, such as a machine that is too busy, is given back, and looked for again.
 */
async function probe(log: Log): Promise<string | undefined> {
  const argv = [...BWRAP, 'true']
  const { code, output, problem, missing } = await runCommand(argv, { timeoutMs: PROBE_MS })
  if (problem !== null && missing === null) {
    log.warn('sandbox not tried', { problem })
    return problem
  }
  if (code !== 0 && missing !== 'absent') {
    log.warn('no sandbox for commands', { problem: problem ?? withNote(output.trim()) })
  }
  works = code === 0
  return undefined
}
