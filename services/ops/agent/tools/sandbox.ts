import { existsSync, realpathSync, statSync } from 'node:fs'
import type { Log } from '../../../../kernel/log.ts'
import {
  runCommand,
  type CommandResult,
  type ProcessOptions,
} from '../../../../kernel/processes/run.ts'
import type { Job } from '../runners/runner.ts'

/** Where commands run that only read: everything is readable, nothing is writable. */
export type Sandbox = ReturnType<typeof openSandbox>

interface RunRequest {
  network?: boolean
  isOwn?: boolean
  outputBytes?: number
}

/** What bwrap said, with what people can do about it. */
type Explain = (output: string) => string

/** `unknown`: bwrap did not answer, for example in time, and will be tested again. */
type SandboxState = { kind: 'works' } | { kind: 'none' | 'unknown'; problem: string }

/** No writable files, other processes, shared memory or privileges; ends with its parent. */
const BWRAP = [
  ['bwrap', '--ro-bind', '/', '/'],
  ['--dev', '/dev'],
  ['--proc', '/proc'],
  ['--tmpfs', '/tmp'],
  ['--unshare-user-try', '--unshare-pid', '--unshare-ipc', '--unshare-uts'],
  ['--cap-drop', 'ALL'],
  ['--new-session', '--die-with-parent'],
].flat()
/**
 * Unix sockets in the file system work across network namespaces, and Docker and systemd obey
 * theirs. Almost all of them are in `/run`, which also has the journal of systems that keep it in
 * memory.
 */
const NO_NETWORK = [
  ['--unshare-net', '--tmpfs', '/run'],
  ['--ro-bind-try', '/run/log/journal', '/run/log/journal'],
].flat()
const PROBE_MS = 5_000
const TIMEOUT_MS = 60_000

export function openSandbox({
  log,
  unsandboxed,
  hidden,
  explain,
}: {
  log: Log
  /** Whether commands that a model composed may run without a sandbox (`OPS_UNSANDBOXED`). */
  unsandboxed: () => boolean
  /**
   * Files, folders and unix sockets that no command may see. They hold secrets, and a process that
   * opens one of our sockets is trusted.
   */
  hidden: () => readonly string[]
  explain: Explain
}) {
  let known: SandboxState | undefined

  /** Tests whether a sandbox can be made, and logs if not. */
  async function prepare(): Promise<SandboxState> {
    if (known !== undefined) return known
    const state = await probeSandbox(explain)
    if (state.kind === 'unknown') {
      log.warn('sandbox not tried', { problem: state.problem })
      return state
    }
    // Two calls may have tested at once.
    if (known === undefined && state.kind === 'none') {
      const commands = unsandboxed() ? 'not sandboxed' : 'off'
      log.warn('no sandbox for commands', { problem: state.problem, commands })
    }
    return (known ??= state)
  }

  /**
   * Runs a command in the sandbox, or without one if that is allowed. `network` also lets it reach
   * the sockets of other programs. `isOwn`: Gatehouse wrote its arguments, and no model chose
   * them. `outputBytes` bounds what is kept of its output.
   */
  async function run(
    argv: readonly string[],
    { marker, signal, config }: Pick<Job, 'marker' | 'signal' | 'config'>,
    { network = false, isOwn = false, outputBytes }: RunRequest,
  ): Promise<CommandResult> {
    const state = await prepare()
    if (state.kind === 'unknown') {
      return notRun(`whether it can be sandboxed is not known yet: ${state.problem}`)
    }
    if (state.kind === 'none' && !isOwn && !unsandboxed()) {
      const off = "commands are off, because bwrap can't sandbox them"
      const remedy = 'The operators may install bubblewrap, or set OPS_UNSANDBOXED=true.'
      return notRun(`${off}: ${state.problem}. ${remedy}`)
    }
    const options = { timeoutMs: TIMEOUT_MS, marker, signal, outputBytes }
    if (state.kind === 'none') return runCommand(argv, options)
    const masks = masksOf(hidden(), config.repos_dir)
    const bwrap = [...BWRAP, ...(network ? [] : NO_NETWORK), ...masks]
    return runCommand([...bwrap, '--', ...argv], options)
  }

  return { prepare, run }
}

/**
 * Hides paths: a folder is empty there, anything else can't be opened. Repositories that are
 * within such a folder are shown.
 */
function masksOf(hidden: readonly string[], repositories: string): readonly string[] {
  // bwrap can't mount on a link, nor where nothing is.
  const real = (path: string) => (existsSync(path) ? [realpathSync(path)] : [])
  const paths = hidden.flatMap(real)
  const isHidden = (one: string) => paths.some((path) => one.startsWith(`${path}/`))
  return [
    ...paths.flatMap((path) =>
      statSync(path).isDirectory() ? ['--tmpfs', path] : ['--ro-bind', '/dev/null', path],
    ),
    ...real(repositories)
      .filter(isHidden)
      .flatMap((path) => ['--ro-bind', path, path]),
  ]
}

/** Tests the sandbox that commands get. `env` has variables besides the inherited ones. */
export async function probeSandbox(
  explain: Explain,
  env: ProcessOptions['env'] = {},
): Promise<SandboxState> {
  const argv = [...BWRAP, ...NO_NETWORK, '--', 'true']
  const { code, output, problem, missing } = await runCommand(argv, { timeoutMs: PROBE_MS, env })
  if (code === 0) return { kind: 'works' }
  if (missing === 'absent') return { kind: 'none', problem: 'bwrap is not installed' }
  if (problem !== null && missing === null) return { kind: 'unknown', problem }
  return { kind: 'none', problem: problem ?? explain(output.trim()) }
}

function notRun(why: string): CommandResult {
  const problem = `it was not run: ${why}`
  return { code: null, output: '', isCut: false, problem, missing: null }
}
