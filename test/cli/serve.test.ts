import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import type { Server } from 'node:net'
import { join } from 'node:path'
import { t } from 'tap'
import { backends } from '../helpers/backends.ts'
import { runCliProcess } from '../helpers/cli.ts'
import { request } from '../helpers/http.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import type { Owner } from '../helpers/owner.ts'
import { exitOf, ROOT, spawnProgram } from '../helpers/program.ts'
import { secret } from '../helpers/secrets.ts'
import { startServerProcess } from '../helpers/server-process.ts'
import { until } from '../helpers/until.ts'

const [, postgres] = backends
const FREE = { HOOKS_ADDR: '127.0.0.1:0', LINKS_ADDR: '127.0.0.1:0', OPS_ADDR: '127.0.0.1:0' }

t.test('one line says that it is ready, and where', async (t) => {
  const { version }: { version: string } = JSON.parse(
    readFileSync(join(ROOT, 'package.json'), 'utf8'),
  )
  const at = 'http://127\\.0\\.0\\.1:\\d+'
  const all = `^gatehouse ${version.replaceAll('.', '\\.')} ready hooks=${at} links=${at} ops=${at}\n$`
  const cases: readonly (readonly [readonly string[], string])[] = [
    [[], all],
    [['serve', 'ops', 'links', 'hooks'], all],
    [['serve', 'hooks'], `^gatehouse \\S+ ready hooks=${at}\n$`],
    [['ops', 'links'], `^gatehouse \\S+ ready links=${at} ops=${at}\n$`],
  ]
  for (const [args, pattern] of cases) {
    const env = { ...FREE, GATEHOUSE_DATA_DIR: await temporaryFolder(t) }
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
})

t.test('a stop while another instance migrates', async (t) => {
  const env = { ...FREE, ...(await postgres.emptyEnv(t)) }
  const held = postgres.query(env, 'select pg_advisory_lock(7203000), pg_sleep(60)')
  // It ends with its database.
  held.catch(() => undefined)
  const locks = (isHeld: boolean) => async (): Promise<boolean> => {
    const text = `select 1 from pg_locks l join pg_database d on d.oid = l.database
                   where locktype = 'advisory' and granted = $1 and datname = current_database()`
    return (await postgres.query(env, text, [isHeld])).length > 0
  }
  await until(locks(true), 'the lock', 10_000)
  const child = spawnProgram(['serve', 'hooks'], env)
  const exited = exitOf(child)
  await until(locks(false), 'the start to wait for it', 30_000)
  const asked = performance.now()
  child.kill('SIGTERM')
  t.same(await exited, { code: 0, signal: null })
  t.ok(performance.now() - asked < 10_000)
})

t.test('a port in use is one line and code 1, whichever listener it hits', async (t) => {
  const taken = await listen(t)
  const database = await postgres.env(t)
  for (const variable of Object.keys(FREE)) {
    const env = { ...FREE, ...database, [variable]: `127.0.0.1:${taken}` }
    const { code, stdout, stderr } = await runCliProcess(['serve'], { env })
    t.match({ code, stdout }, { code: 1, stdout: '' }, variable)
    const lines = stderr.split('\n').filter((line) => line !== '' && !line.startsWith('{'))
    t.equal(lines.length, 1, `${variable} makes one line`)
    t.match(lines[0], new RegExp(`^gatehouse: .*in use.*${taken}`))
  }
})

t.test('an address that can’t be served is refused', async (t) => {
  const cases: readonly (readonly [string, RegExp])[] = [
    ['0.0.0.0:0', /^gatehouse: HOOKS_ADDR is beyond loopback: set GATEHOUSE_TRUSTED_PROXIES/m],
    ['[::]:0', /^gatehouse: HOOKS_ADDR is beyond loopback: set GATEHOUSE_TRUSTED_PROXIES/m],
    ['fd:web', /^gatehouse: No socket named "web" was passed/m],
    ['unix:/nowhere/at/all.sock', /^gatehouse: .*\/nowhere\/at\/all\.sock/m],
  ]
  const database = await postgres.env(t)
  for (const [address, line] of cases) {
    const env = { ...database, HOOKS_ADDR: address }
    const result = await runCliProcess(['serve', 'hooks'], { env })
    t.match(result, { code: 1, stdout: '', stderr: line }, address)
  }
  const result = await runCliProcess(['serve'], {
    env: { ...FREE, GATEHOUSE_DATA_DIR: '/dev/null/data' },
  })
  t.match(result, {
    code: 1,
    stderr: /^gatehouse: cannot use the data directory \/dev\/null\/data/m,
  })
})

t.test('a unix socket serves like a port', async (t) => {
  const folder = await temporaryFolder(t, 'socket')
  const socketPath = join(folder, 'hooks.sock')
  const key = secret('unix-socket')
  const env = { HOOKS_ADDR: `unix:${socketPath}`, HOOKS_CODE_HOST_SECRET: key }
  const data = { GATEHOUSE_DATA_DIR: await temporaryFolder(t) }
  const server = await startServerProcess(t, { services: ['hooks'], env: { ...env, ...data } })
  t.equal(server.hooks, `unix:${socketPath}`)
  const health = await request('http://localhost/healthz', { socketPath })
  t.match({ status: health.status, body: health.json() }, { status: 200, body: { status: 'ok' } })
  t.equal((await request('http://localhost/', { socketPath })).status, 200, 'it counts as loopback')
  const other = { Host: 'elsewhere.example' }
  t.equal((await request('http://localhost/', { socketPath, headers: other })).status, 403)

  await server.kill()
  const again = await startServerProcess(t, { services: ['hooks'], env: { ...env, ...data } })
  t.equal(again.hooks, `unix:${socketPath}`, 'the socket of a crashed server is replaced')
  const used = await runCliProcess(['serve', 'hooks'], {
    env: { ...env, ...(await postgres.env(t)) },
  })
  t.match(used, { code: 1, stdout: '', stderr: /^gatehouse: .*in use.*hooks\.sock/m })
  t.equal((await request('http://localhost/healthz', { socketPath })).status, 200, 'a live one not')
})

/** A port of ours that is taken until the test ends. */
async function listen(t: Owner): Promise<number> {
  const server: Server = createServer()
  const listening = Promise.withResolvers<void>()
  server.listen(0, '127.0.0.1', listening.resolve)
  await listening.promise
  t.teardown(() => server.close())
  const address = server.address()
  return typeof address === 'object' && address !== null ? address.port : 0
}
