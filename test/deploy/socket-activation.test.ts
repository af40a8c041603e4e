import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { renameSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { t } from 'tap'
import { postgres } from '../helpers/backends.ts'
import { refuseCommands } from '../helpers/cli.ts'
import { brokenOf, createSender, lostOf, startLoad, storedEvents } from '../helpers/deliveries.ts'
import { request } from '../helpers/http.ts'
import { linksServer, makeLink } from '../helpers/links.ts'
import { allServed, startVisits } from '../helpers/load.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { ROOT, recordChild, recordProcess, runFolder, type Env } from '../helpers/program.ts'
import { follow } from '../helpers/replays.ts'
import { transcript } from '../helpers/secrets.ts'
import { SERVICES, parseReady, type Service } from '../helpers/server.ts'
import { until } from '../helpers/until.ts'

/**
 * systemd's part in a shell: it has the listening sockets from its start to its end, never accepts on
 * them, passes them on with `LISTEN_*`, and starts the program again whenever it has ended. The program
 * takes the place of the shell that says its id, so that `LISTEN_PID` is right.
 */
const SUPERVISOR = `
trap 'stopping=1; kill $pid' TERM
while [ -z "$stopping" ]; do
  sh -c 'LISTEN_PID=$$ exec "$@"' sh "$@" &
  pid=$!
  echo "started $pid"
  while kill -0 $pid 2>/dev/null; do wait $pid; code=$?; done
  echo "ended $pid $code"
  [ "$code" = 0 ] || sleep 1
done`

/** Starts the supervisor with a socket for each service, some of them at paths; all end with the test. */
async function startSupervised(env: Env, paths: Partial<Readonly<Record<Service, string>>>) {
  const sockets = await Promise.all(SERVICES.map((service) => listening(paths[service])))
  const variables = {
    PATH: process.env['PATH'],
    HOME: runFolder(),
    LISTEN_FDS: sockets.length,
    LISTEN_FDNAMES: 'hooks:links:ops',
    HOOKS_ADDR: 'fd:hooks',
    LINKS_ADDR: 'fd:links',
    OPS_ADDR: 'fd:ops',
    ...env,
  }
  const settings = Object.entries(variables).map(([name, value]) => `${name}=${value}`)
  const command = ['sh', '-c', SUPERVISOR, 'supervisor', process.execPath, 'server.ts', 'serve']
  const child = spawn('env', ['-i', ...settings, ...command], {
    cwd: ROOT,
    // Nothing has connected yet; from here on the shell has them alone.
    stdio: ['ignore', 'pipe', 'pipe', ...sockets.map(descriptor)],
  })
  recordChild(child)
  await Promise.all(sockets.map((socket) => once(socket.close(), 'close')))

  let [said, stderr] = ['', '']
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    said += text
    for (const [, pid] of text.matchAll(/^started (\d+)$/gm)) {
      recordProcess(runFolder(), Number(pid))
    }
  })
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    transcript('log', text, 'supervisor')
    stderr += text
  })
  const over = once(child, 'close').then(([code, signal]) => ({ code, signal }))
  const started = () => Number([...said.matchAll(/^started (\d+)$/gm)].at(-1)?.[1])
  async function ready() {
    const lastStart = () => said.slice(said.lastIndexOf('started '))
    await until(() => /^gatehouse \S+ ready .*\n$/m.test(lastStart()), 'the next one', 30_000)
  }
  function stop() {
    child.kill('SIGTERM')
    return over
  }
  t.teardown(stop)
  await ready()
  const { hooks = '', links = '', ops = '' } = parseReady(said) ?? {}
  return {
    hooks,
    links,
    ops,
    stop,
    logs: () => stderr.split('\n'),
    /** SIGTERM to the process that runs now; gives its exit code when the next one is ready. */
    async restart(): Promise<string> {
      const pid = started()
      process.kill(pid, 'SIGTERM')
      const line = new RegExp(`^ended ${pid} (\\d+)$`, 'm')
      const code = await until(() => line.exec(said)?.[1], `the end of process ${pid}`, 15_000)
      await until(() => started() !== pid, 'the next process to be started')
      await ready()
      return code
    },
  }
}

async function listening(path: string | undefined) {
  const server = createServer()
  // Under another name at first: Node removes the one that it has made when it closes the server.
  if (path === undefined) server.listen(0, '127.0.0.1')
  else server.listen(`${path}.new`)
  await once(server, 'listening')
  if (path !== undefined) renameSync(`${path}.new`, path)
  return server
}

/** Node gives the descriptor of a listening socket nowhere else. */
function descriptor(server: Server) {
  return (server as unknown as { _handle: { fd: number } })._handle.fd
}

await t.test('a restart under load: no connection is refused, and nothing is lost', async (t) => {
  const sender = createSender()
  const env = { ...(await postgres.env(t)), ...sender.env }
  const socketPath = join(await temporaryFolder(t, 'socket'), 'ops.sock')
  const supervised = await startSupervised(env, { ops: socketPath })
  t.equal(supervised.ops, 'fd:ops', 'its ready line has the name: Node knows no path')
  const links = linksServer(supervised, env)
  await makeLink(await links.user('ann'), 'docs', { url: 'https://docs.test/' })

  const stream = follow(t, `${supervised.hooks}/events`)
  const options = { base: () => supervised.hooks, sender, senders: 2, restMs: 10 }
  const loads = [true, false].map((keepsConnections) =>
    startLoad(t, { ...options, keepsConnections }),
  )
  const visits = [true, false].map((keeps) =>
    startVisits(links.base, ['/docs'], { clients: 1, keepsConnections: keeps, restMs: 10 }),
  )
  const acked = () => loads.flatMap((load) => load.acked)
  const underWay = async () => {
    const before = acked().length
    await until(() => acked().length >= before + 20, 'the load to be under way', 30_000)
    t.equal((await request('http://localhost/healthz', { socketPath })).status, 200)
  }
  await underWay()
  t.equal(await supervised.restart(), '0', 'SIGTERM ends it in order')
  await underWay()
  await Promise.all([...loads, ...visits].map((load) => load.stop()))
  allServed(t, loads, visits)

  const ids = acked()
    .map(({ id }) => id)
    .toSorted((a, b) => a - b)
  await until(() => stream.ids.at(-1) === ids.at(-1), 'the stream to have the last event')
  await stream.stop()
  t.same(stream.refused, [], 'each connection is a stream')
  t.ok(stream.connections > 1, 'it was ended by the restart')
  t.same(stream.ids, ids, 'it has every event once and in order')
  t.same(await supervised.stop(), { code: 0, signal: null })
  const stored = await storedEvents(postgres, env)
  t.same(lostOf(acked(), stored), [], `all of ${ids.length} acknowledged are there`)
  t.same(brokenOf(new Map(loads.flatMap((load) => [...load.sent])), stored), [])
  t.equal(stored.size, ids.length, 'whatever was stored was answered')
  t.notMatch(supervised.logs().join('\n'), /handler failed|unhandled|"level":"error"/i)
})

await t.test('sockets that are meant for another process are left alone', async (t) => {
  const passed = { LISTEN_FDS: '1', LISTEN_FDNAMES: 'hooks', LISTEN_PID: '1' }
  const env = { ...(await postgres.env(t)), ...passed, HOOKS_ADDR: 'fd:hooks' }
  await refuseCommands(t, { env, state: async () => true }, [
    ['serve hooks', 1, 'No socket named "hooks" was passed'],
  ])
})
