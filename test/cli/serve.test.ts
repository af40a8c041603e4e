import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { t } from 'tap'
import { backends } from '../helpers/backends.ts'
import { FREE, refuseCommands, runCli, runCliProcess } from '../helpers/cli.ts'
import type { RefusedCommand } from '../helpers/cli.ts'
import { request } from '../helpers/http.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import type { Owner } from '../helpers/owner.ts'
import { childrenOf, isRunning } from '../helpers/process-figures.ts'
import { ROOT, exitOf, recordProcess, runFolder, spawnProgram } from '../helpers/program.ts'
import { secret } from '../helpers/secrets.ts'
import { startServerProcess } from '../helpers/server-process.ts'
import { startServer } from '../helpers/server.ts'
import { until } from '../helpers/until.ts'
import { onPath } from '../runner/system-parts.ts'

const [, postgres] = backends
const database = await postgres.env(t)
const noScript = onPath('script') === undefined && 'missing: script, of util-linux'

t.test('one line says that it is ready, and where', async (t) => {
  const { version }: { version: string } = JSON.parse(
    readFileSync(join(ROOT, 'package.json'), 'utf8'),
  )
  const at = 'http://127\\.0\\.0\\.1:\\d+'
  const all = `^gatehouse ${version.replaceAll('.', '\\.')} ready hooks=${at} links=${at} ops=${at}\n$`
  const env = { ...FREE, ...database }
  for (const [args, pattern] of [
    [[], all],
    [['ops', 'links'], `^gatehouse \\S+ ready links=${at} ops=${at}\n$`],
  ] as const) {
    const child = spawnProgram(args, env)
    const exited = exitOf(child)
    let [stdout, stderr] = ['', '']
    child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
    await until(() => stdout.includes('\n'), `the ready line of '${args.join(' ')}'`, 30_000)
    child.kill('SIGTERM')
    t.same(await exited, { code: 0, signal: null }, 'SIGTERM ends it in order')
    t.match(stdout, new RegExp(pattern), args.join(' '))
    const lines = stderr.trim().split('\n')
    for (const line of lines)
      t.match(JSON.parse(line), { time: String, level: String, msg: String })
    t.match(lines.at(-1), '"stopped"')
  }
  for (const args of [['serve', 'hooks'], ['serve', 'ops', 'links', 'hooks'], ['ops']]) {
    t.match(await runCli(args, { env }), { code: 0 }, args.join(' '))
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
function olderNode(): string | undefined {
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
    for (const args of [['serve'], ['help'], []]) {
      const { status, stdout, stderr } = spawnSync(older ?? '', [program, ...args], {
        encoding: 'utf8',
      })
      t.equal(status, 1)
      t.equal(stdout, '')
      t.match(
        stderr,
        /^gatehouse: this is Node [\d.]+, and Gatehouse needs Node 26 or newer: .+\n$/,
      )
    }
    const current = await runCliProcess(['version'], { program: [process.execPath, program] })
    t.match(current, { code: 0, stdout: /^\d/, stderr: '' })
  },
)

t.test('a stop while another instance migrates', async (t) => {
  const env = { ...FREE, ...(await postgres.emptyEnv(t)) }
  const held = postgres.query(env, 'select pg_advisory_lock(7203000), pg_sleep(600)')
  held.catch(() => undefined)
  const ends = `select pg_terminate_backend(pid) from pg_stat_activity
                 where datname = current_database() and query like '%pg_sleep(600)'`
  t.teardown(() => postgres.query(env, ends))
  const locks = (isHeld: boolean) => async (): Promise<boolean> => {
    const text = `select 1 from pg_locks l join pg_database d on d.oid = l.database
                   where locktype = 'advisory' and granted = $1 and datname = current_database()`
    return (await postgres.query(env, text, [isHeld])).length > 0
  }
  await until(locks(true), 'the lock', 10_000)
  const child = spawnProgram(['serve', 'hooks'], env)
  const exited = exitOf(child)
  await until(locks(false), 'the start to wait for it', 30_000)
  child.kill('SIGTERM')
  t.same(await exited, { code: 0, signal: null })
  t.ok(await locks(true)(), 'the other one still has the lock')
})

t.test('an address that can’t be served is one line and code 1', async (t) => {
  const port = await listen(t)
  const env = { ...FREE, ...database }
  const at = (variable: string, address: string, line: RegExp): RefusedCommand => [
    { args: ['serve'], env: { [variable]: address } },
    1,
    line,
  ]
  const inUse = new RegExp(`^gatehouse: .*in use.*${port}`)
  const beyond = /^gatehouse: HOOKS_ADDR is beyond loopback: set GATEHOUSE_TRUSTED_PROXIES/
  const state = async () => (await runCli(['provider', 'list'], { env })).stdout
  await refuseCommands(t, { env, state }, [
    ...Object.keys(FREE).map((variable) => at(variable, `127.0.0.1:${port}`, inUse)),
    at('HOOKS_ADDR', '0.0.0.0:0', beyond),
    at('HOOKS_ADDR', '[::]:0', beyond),
    at('HOOKS_ADDR', 'fd:web', /^gatehouse: No socket named "web" was passed/),
    at('HOOKS_ADDR', 'unix:/nowhere/at/all.sock', /^gatehouse: .*\/nowhere\/at\/all\.sock/),
    [
      { args: ['serve'], env: { DATABASE_URL: '', GATEHOUSE_DATA_DIR: '/dev/null/data' } },
      1,
      /^gatehouse: cannot use the data directory \/dev\/null\/data/,
    ],
  ])
})

t.test('a unix socket serves like a port', async (t) => {
  const folder = await temporaryFolder(t, 'socket')
  const socketPath = join(folder, 'hooks.sock')
  const key = { HOOKS_CODE_HOST_SECRET: secret('unix-socket') }
  const env = { ...database, ...key, HOOKS_ADDR: `unix:${socketPath}` }
  const server = await startServerProcess(t, { services: ['hooks'], env })
  t.equal(server.hooks, `unix:${socketPath}`)
  const health = await request('http://localhost/healthz', { socketPath })
  t.match({ status: health.status, body: health.json() }, { status: 200, body: { status: 'ok' } })
  t.equal(
    (await request('http://localhost/', { socketPath })).status,
    200,
    'it counts as loopback',
  )
  const other = { Host: 'elsewhere.example' }
  t.equal((await request('http://localhost/', { socketPath, headers: other })).status, 403)

  await server.kill()
  const again = await startServer(t, { services: ['hooks'], env })
  t.equal(again.hooks, `unix:${socketPath}`, 'the socket of a crashed server is replaced')
  const health200 = async () =>
    (await request('http://localhost/healthz', { socketPath })).status === 200
  await refuseCommands(t, { env, state: health200 }, [
    [['serve', 'hooks'], 1, /^gatehouse: .*in use.*hooks\.sock/],
  ])
  t.ok(await health200(), 'a live one is not')
})

/** A port of ours that is taken until the test ends. */
async function listen(t: Owner): Promise<number> {
  const server = createServer()
  const listening = Promise.withResolvers<void>()
  server.listen(0, '127.0.0.1', listening.resolve)
  await listening.promise
  t.teardown(() => server.close())
  return (server.address() as AddressInfo).port
}
