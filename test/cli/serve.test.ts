import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { t } from 'tap'
import { postgres } from '../helpers/backends.ts'
import {
  FREE,
  openCli,
  refuseCommands,
  runCli,
  runCliProcess,
  type RefusedCommand,
} from '../helpers/cli.ts'
import { request } from '../helpers/http.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { childrenOf, isRunning } from '../helpers/process-figures.ts'
import { ROOT, recordProcess, runFolder, type Env } from '../helpers/program.ts'
import { startReceiver } from '../helpers/replays.ts'
import { startServerProcess } from '../helpers/server-process.ts'
import { startServer } from '../helpers/server.ts'
import { until } from '../helpers/until.ts'
import { onPath } from '../runner/system-parts.ts'

const database = await postgres.env(t)
const env = { ...FREE, ...database }
const noScript = onPath('script') === undefined && 'missing: script, of util-linux'

t.test('one line says that it is ready, and where', async (t) => {
  const { stdout: version } = await runCli('version')
  const at = 'http://127\\.0\\.0\\.1:\\d+'
  const start = `^gatehouse ${RegExp.escape(version.trim())} ready`
  for (const [words, where] of [
    [[], `hooks=${at} links=${at} ops=${at}`],
    ['ops links', `links=${at} ops=${at}`],
  ] as const) {
    const { code, stdout, stderr } = await runCli(words, { env })
    t.equal(code, 0)
    t.match(stdout, new RegExp(`${start} ${where}\n$`))
    const lines = stderr.trim().split('\n')
    for (const line of lines) {
      t.match(JSON.parse(line), { time: String, level: String, msg: String })
    }
    t.match(lines.at(-1), '"stopped"')
  }
})

t.test('with its terminal it ends, and in order', { skip: noScript }, async (t) => {
  const log = join(await temporaryFolder(t), 'log')
  const serve = `exec ${process.execPath} server.ts serve 2>${log}`
  // What helpers add is an argument of sh that nothing reads.
  const program = ['sh', '-c', `exec script -qec '${serve}' /dev/null`]
  const server = await startServerProcess(t, { env: database, program })
  const [pid = 0] = childrenOf(server.pid)
  recordProcess(runFolder(), pid)
  process.kill(pid, 'SIGHUP')
  await until(() => readFileSync(log, 'utf8').includes('"configuration re-read"'), 'a reload')
  t.ok(isRunning(pid), 'SIGHUP alone has it read the settings again')
  await server.kill()
  await until(() => !isRunning(pid), 'the server to end without its terminal', 15_000)
  t.match(readFileSync(log, 'utf8').trim().split('\n').at(-1), '"stopped"')
})

/** A Node on PATH that is too old for the program, as Debian's own is. */
function olderNode() {
  const onPath = (process.env['PATH'] ?? '').split(':').map((folder) => join(folder, 'node'))
  return ['/usr/bin/node', ...onPath].find((path) => {
    const { stdout } = spawnSync(path, ['--version'], { encoding: 'utf8' })
    return /^v(?:1\d|2[0-5])\./.test(stdout ?? '')
  })
}

const older = olderNode()
t.test(
  'an older Node says in one line what is needed',
  { skip: older === undefined && 'every Node of this machine is new enough' },
  async (t) => {
    const program = join(ROOT, 'gatehouse.js')
    const { status, stdout, stderr } = spawnSync(older ?? '', [program], { encoding: 'utf8' })
    t.same([status, stdout], [1, ''])
    const line = /^gatehouse: this is Node [\d.]+, and Gatehouse needs Node 26 or newer: .+\n$/
    t.match(stderr, line)
  },
)

t.test('compiled modules are kept where no other user can write', async (t) => {
  const home = await temporaryFolder(t, 'home')
  // Only what gatehouse.js does counts, not what it starts.
  copyFileSync(join(ROOT, 'gatehouse.js'), join(home, 'gatehouse.mjs'))
  writeFileSync(join(home, 'server.ts'), `process.stdout.write('started')\n`)
  async function kept(cache: string) {
    const env = { HOME: home, XDG_CACHE_HOME: join(home, cache), NODE_COMPILE_CACHE: '' }
    const options = { program: [process.execPath, join(home, 'gatehouse.mjs')], env }
    t.match(await runCliProcess([], options), { code: 0, stdout: 'started', stderr: '' })
    return readdirSync(join(home, cache, 'gatehouse')).length
  }
  t.equal(await kept('own'), 1)
  const own = join(home, 'own/gatehouse')
  t.equal(statSync(own).mode & 0o777, 0o700)
  mkdirSync(join(home, 'linked'))
  mkdirSync(join(home, 'elsewhere'), { mode: 0o700 })
  symlinkSync(join(home, 'elsewhere'), join(home, 'linked/gatehouse'))
  t.equal(await kept('linked'), 0, 'a link')
  mkdirSync(join(home, 'open/gatehouse'), { recursive: true })
  chmodSync(join(home, 'open/gatehouse'), 0o770)
  t.equal(await kept('open'), 0, 'a folder in which others can write')
})

t.test('a stop while another instance migrates', async (t) => {
  const empty = { ...FREE, ...(await postgres.emptyEnv(t)) }
  const held = postgres.query(empty, 'select pg_advisory_lock(7203000), pg_sleep(600)')
  held.catch(() => undefined)
  const ends = `select pg_terminate_backend(pid) from pg_stat_activity
                 where datname = current_database() and query like '%pg_sleep(600)'`
  t.teardown(() => postgres.query(empty, ends))
  const locks = (isHeld: boolean) => async () => {
    const text = `select 1 from pg_locks l join pg_database d on d.oid = l.database
                   where locktype = 'advisory' and granted = $1 and datname = current_database()`
    return (await postgres.query(empty, text, [isHeld])).length > 0
  }
  await until(locks(true), 'the lock', 10_000)
  const server = openCli(t, 'serve hooks', empty)
  await until(locks(false), 'the start to wait for it', 30_000)
  t.equal(await server.stop(), 0)
  t.ok(await locks(true)(), 'the other one still has the lock')
})

t.test('an address that can’t be served is one line and code 1', async (t) => {
  const { port } = await startReceiver(t)
  const at = (line: string | RegExp, given: Env): RefusedCommand => [
    { args: 'serve', env: given },
    1,
    line,
  ]
  const beyond = 'HOOKS_ADDR is beyond loopback: set GATEHOUSE_TRUSTED_PROXIES'
  const none = { DATABASE_URL: '', GATEHOUSE_DATA_DIR: '/dev/null/data' }
  const state = async () => (await runCli('provider list', { env })).stdout
  await refuseCommands(t, { env, state }, [
    at(`OPS_ADDR: another program listens on 127.0.0.1:${port} `, {
      OPS_ADDR: `127.0.0.1:${port}`,
    }),
    at(beyond, { HOOKS_ADDR: '0.0.0.0:0' }),
    at(beyond, { HOOKS_ADDR: '[::]:0' }),
    at('No socket named "web" was passed', { HOOKS_ADDR: 'fd:web' }),
    at(/\/nowhere\/a\.sock/, { HOOKS_ADDR: 'unix:/nowhere/a.sock' }),
    at('cannot use the data directory /dev/null/data', none),
  ])
})

t.test('a unix socket serves like a port', async (t) => {
  const socketPath = join(await temporaryFolder(t, 'socket'), 'hooks.sock')
  // As a crash leaves it: Node removes the name that it has made.
  const crashed = createServer()
  await new Promise<void>((resolve) => crashed.listen(`${socketPath}.new`, resolve))
  renameSync(`${socketPath}.new`, socketPath)
  crashed.close()
  const there = { ...database, HOOKS_ADDR: `unix:${socketPath}` }
  const server = await startServer(t, { services: ['hooks'], env: there })
  t.equal(server.hooks, `unix:${socketPath}`, 'the socket of a crashed server is replaced')
  const ask = async (path: string, headers = {}) =>
    (await request(`http://localhost${path}`, { socketPath, headers })).status
  t.equal(await ask('/'), 200, 'it counts as loopback')
  t.equal(await ask('/', { Host: 'elsewhere.example' }), 403)
  const line = /HOOKS_ADDR: a running gatehouse .* listens on unix:/
  await refuseCommands(t, { env: there, state: () => ask('/healthz') }, [['serve hooks', 1, line]])
  t.equal(await ask('/healthz'), 200, 'a live one is not')
})
