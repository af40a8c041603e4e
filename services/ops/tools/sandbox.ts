import type { Log } from '../../../kernel/log.ts'
import { runCommand, type CommandResult } from '../../../kernel/spawn.ts'
import { withNote } from '../hardening.ts'
import type { ToolContext } from './tool.ts'

/** Everything can be read and nothing written; without new privileges, and gone with its parent. */
const BWRAP = [
  ...['bwrap', '--ro-bind', '/', '/', '--dev', '/dev', '--tmpfs', '/tmp'],
  ...['--cap-drop', 'ALL', '--unshare-ipc', '--new-session', '--die-with-parent', '--'],
]
const PROBE_MS = 5_000
const TIMEOUT_MS = 60_000

let works: Promise<boolean> | undefined

/**
 * Runs a command that only looks, as a process of the session: within bwrap where that is installed
 * and allowed to make a sandbox, else as it is.
 */
export async function runLooking(
  argv: readonly string[],
  { job: { marker, signal }, log }: Pick<ToolContext, 'job' | 'log'>,
): Promise<CommandResult> {
  works ??= probe(log)
  const sandboxed = (await works) ? [...BWRAP, ...argv] : argv
  return runCommand(sandboxed, { timeoutMs: TIMEOUT_MS, marker, signal })
}

/** Whether bwrap can make a sandbox; where it is installed and can't, the log says why. */
async function probe(log: Log): Promise<boolean> {
  const { code, output } = await runCommand([...BWRAP, 'true'], { timeoutMs: PROBE_MS })
  if (code !== null && code !== 0)
    log.warn('no sandbox for commands', { problem: withNote(output.trim()) })
  return code === 0
}
