import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { renameSync } from 'node:fs'
import { createServer } from 'node:net'
import type { Server } from 'node:net'
import type { Owner } from '../helpers/owner.ts'
import { ROOT, recordProcess, runFolder } from '../helpers/program.ts'
import type { Env, Exit } from '../helpers/program.ts'
import { transcript } from '../helpers/secrets.ts'
import type { ServerProcess } from '../helpers/server-process.ts'
import { SERVICES, parseReady } from '../helpers/server.ts'
import type { Service } from '../helpers/server.ts'
import { until } from '../helpers/until.ts'

/**
 * systemd's part in a shell: it has the listening sockets from its start to its end, never accepts on
 * them, passes them on with `LISTEN_*`, and starts the program again whenever it has ended. The program
 * takes the place of the shell that says its id, so that `LISTEN_PID` is right.
 */
const SCRIPT = `
trap 'stopping=1; kill $pid' TERM
while [ -z "$stopping" ]; do
  sh -c 'LISTEN_PID=$$ exec "$@"' sh "$@" &
  pid=$!
  echo "started $pid"
  while kill -0 $pid 2>/dev/null; do wait $pid; code=$?; done
  echo "ended $pid $code"
  [ "$code" = 0 ] || sleep 1
done`

/** A product under the supervisor; `pid`, `stop` and the like are of the process that runs now. */
export type Supervised = ServerProcess & {
  /** SIGTERM to the process that runs now; settles with its exit code when the next one is ready. */
  restart(): Promise<number>
}

/** What to supervise, and where. */
export type SupervisedOptions = {
  /** Paths of unix sockets; a free port of 127.0.0.1 where there is none. */
  paths?: Partial<Readonly<Record<Service, string>>>
  /** Program instead of `node server.ts`, for the built executable. */
  program?: readonly string[]
}

/** Starts the supervisor with a socket for each service; both end with the test. */
export async function startSupervised(
  t: Owner,
  env: Env,
  { paths = {}, program = [process.execPath, 'server.ts'] }: SupervisedOptions = {},
): Promise<Supervised> {
  const sockets = await Promise.all(SERVICES.map((service) => listening(paths[service])))
  const addresses = { HOOKS_ADDR: 'fd:hooks', LINKS_ADDR: 'fd:links', OPS_ADDR: 'fd:ops' }
  const passed = { LISTEN_FDS: String(sockets.length), LISTEN_FDNAMES: SERVICES.join(':') }
  const base = { PATH: process.env['PATH'] ?? '/usr/bin:/bin', HOME: runFolder() }
  const compiled = process.env['NODE_COMPILE_CACHE']
  const cache = compiled === undefined ? {} : { NODE_COMPILE_CACHE: compiled }
  const variables = Object.entries({ ...base, ...cache, ...passed, ...addresses, ...env })
  const settings = variables.map(([name, value]) => `${name}=${value}`)
  const command = ['sh', '-c', SCRIPT, 'supervisor', ...program, 'serve']
  const child = spawn('env', ['-i', ...settings, ...command], {
    cwd: ROOT,
    // Nothing has connected yet; from here on the shell has them alone.
    stdio: ['ignore', 'pipe', 'pipe', ...sockets.map(descriptor)],
  })
  if (child.pid !== undefined) recordProcess(runFolder(), child.pid)
  await Promise.all(sockets.map((socket) => once(socket.close(), 'close')))

  let [said, stderr] = ['', '']
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    transcript('log', text, 'supervisor')
    said += text
    for (const [, pid] of text.matchAll(/^started (\d+)$/gm)) {
      recordProcess(runFolder(), Number(pid))
    }
  })
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    transcript('log', text, 'supervisor')
    stderr += text
  })
  const over = Promise.withResolvers<Exit>()
  child.once('error', over.reject)
  child.once('close', (code, signal) => over.resolve({ code, signal }))

  const started = (): number => Number([...said.matchAll(/^started (\d+)$/gm)].at(-1)?.[1])
  const exitOf = (pid: number): string | undefined =>
    new RegExp(`^ended ${pid} (\\d+)$`, 'm').exec(said)?.[1]
  /** The ready line comes after that of the start. */
  const isReady = (): boolean =>
    /^started \d+\n(?:[^]*\n)?gatehouse \S+ ready .*\n$/m.test(lastStart())
  const lastStart = (): string => said.slice(said.lastIndexOf('started '))

  async function ready(): Promise<void> {
    await until(isReady, `the next process to be ready: ${said}${stderr.slice(-2_000)}`, 30_000)
  }
  async function end(signal: NodeJS.Signals): Promise<Exit> {
    child.kill('SIGTERM')
    if (signal === 'SIGKILL') process.kill(started(), signal)
    const last = setTimeout(() => process.kill(started(), 'SIGKILL'), 15_000)
    return over.promise.finally(() => clearTimeout(last))
  }
  t.teardown(() => (child.exitCode === null ? end('SIGTERM') : undefined))
  await ready()
  const { hooks = '', links = '', ops = '' } = parseReady(said) ?? {}
  return {
    ...{ hooks, links, ops },
    get pid() {
      return started()
    },
    logs: () => stderr.split('\n').filter((line) => line !== ''),
    stop: () => end('SIGTERM'),
    kill: () => end('SIGKILL'),
    exited: over.promise,
    async restart() {
      const pid = started()
      process.kill(pid, 'SIGTERM')
      const code = await until(() => exitOf(pid), `the end of process ${pid}`, 15_000)
      await until(() => started() !== pid, 'the next process to be started')
      await ready()
      return Number(code)
    },
  }
}

async function listening(path: string | undefined): Promise<Server> {
  const server = createServer()
  // Under another name at first: Node removes the one that it has made when it closes the server.
  if (path === undefined) server.listen(0, '127.0.0.1')
  else server.listen(`${path}.new`)
  await once(server, 'listening')
  if (path !== undefined) renameSync(`${path}.new`, path)
  return server
}

/** Node gives the descriptor of a listening socket nowhere else. */
function descriptor(server: Server): number {
  return (server as unknown as { readonly _handle: { readonly fd: number } })._handle.fd
}
