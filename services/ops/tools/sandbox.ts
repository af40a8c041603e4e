import { runCommand, type CommandResult } from '../../../kernel/spawn.ts'
import type { ToolContext } from './tool.ts'

/** Everything can be read and nothing written; without new privileges, and gone with its parent. */
const BWRAP = [
  ...['bwrap', '--ro-bind', '/', '/', '--dev', '/dev', '--tmpfs', '/tmp'],
  ...['--cap-drop', 'ALL', '--unshare-ipc', '--new-session', '--die-with-parent', '--'],
]
const PROBE_MS = 5_000
const TIMEOUT_MS = 60_000
/** Bytes of output that are read. */
export const OUTPUT_BYTES = 64 * 1024

let works: Promise<boolean> | undefined

/**
 * Runs a command that only looks, as a process of the session: within bwrap where that is installed
 * and allowed to make a sandbox, else as it is.
 */
export async function runLooking(
  argv: readonly string[],
  { job: { marker, signal } }: Pick<ToolContext, 'job'>,
): Promise<CommandResult> {
  works ??= runCommand([...BWRAP, 'true'], { timeoutMs: PROBE_MS }).then(({ code }) => code === 0)
  const sandboxed = (await works) ? [...BWRAP, ...argv] : argv
  return runCommand(sandboxed, { timeoutMs: TIMEOUT_MS, limit: OUTPUT_BYTES, marker, signal })
}
