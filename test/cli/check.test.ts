import { existsSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { t } from 'tap'
import type { Test } from 'tap'
import { backends, eachBackend } from '../helpers/backends.ts'
import { check, FREE } from '../helpers/check.ts'
import { runCli } from '../helpers/cli.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { freePort } from '../helpers/free-port.ts'
import type { Env } from '../helpers/program.ts'
import { keepSecret, secret } from '../helpers/secrets.ts'
import { secretKey } from '../helpers/senders-setup.ts'
import { startServerProcess } from '../helpers/server-process.ts'

const [embedded, postgres] = backends
const OPEN = `select count(*)::int as n from pg_namespace where nspname in ('hooks', 'gatehouse')`
const ANOTHER = 'sealed with another key'
const UNSEEN =
  "a proxy that leaves no sign of itself can't be seen, and everybody who comes through it counts as a user of this machine"
const NO_KEY = 'GATEHOUSE_SECRET_KEY is not set'

function unreadable(name: string, problem: string): string {
  return (
    `FAIL  generic:${name}: its signing secret can't be read (${problem}); set GATEHOUSE_SECRET_KEY to ` +
    `the key that it was stored with, or make a new one: gatehouse provider rotate generic:${name}`
  )
}

t.test('nothing is created by looking', async (t) => {
  const directory = join(await temporaryFolder(t), 'deep', 'data')
  const env = { ...FREE, GATEHOUSE_DATA_DIR: directory }
  const fresh = await runCli(['check'], { env })
  t.match(fresh, { code: 0, stderr: '' })
  t.same(fresh.stdout.replace(/(?<=free space: ).* in/, 'ENOUGH in').split('\n'), [
    `ok    GATEHOUSE_TRUSTED_PROXIES: none; ${UNSEEN}: set this before you put a proxy in front`,
    'ok    configuration: variables set: 4',
    `ok    data directory: ${directory}, not created yet`,
    `ok    free space: ENOUGH in ${dirname(dirname(directory))}`,
    `ok    database: embedded, not created yet in ${directory}`,
    'ok    HOOKS_ADDR: 127.0.0.1:0, any free port',
    'ok    LINKS_ADDR: 127.0.0.1:0, any free port',
    'ok    OPS_ADDR: 127.0.0.1:0, any free port',
    '',
  ])
  t.notOk(existsSync(directory), 'no folder')

  const server = { ...FREE, ...(await postgres.emptyEnv(t)) }
  const { code, stdout } = await runCli(['check'], { env: server })
  t.equal(code, 0)
  t.match(stdout, /^ok {4}database: PostgreSQL server \d+\.\d.*, without TLS$/m)
  t.match(stdout, /^ok {4}migrations: 0 applied, \d+ to be applied/m)
  t.same(await postgres.query(server, OPEN), [{ n: 0 }], 'no schema')
})

await eachBackend(t, 'a migrated database is fine', async (t: Test, backend) => {
  const env = await backend.env(t)
  const { code, findings } = await check(env)
  t.equal(code, 0)
  t.match(findings, [
    { ok: true, level: 'ok', what: 'GATEHOUSE_TRUSTED_PROXIES' },
    { ok: true, level: 'ok', what: 'configuration', detail: /^variables set: \d$/ },
    { what: 'data directory', detail: env['GATEHOUSE_DATA_DIR'] },
    { what: 'free space', detail: /^[\d.]+ [MG]iB in / },
    { what: 'database', detail: backend.name === 'embedded' ? /^embedded in / : /Postgre/ },
    { what: 'clock', detail: /^0\.\d{3} s (ahead of|behind) the database's \(give or take 0\./ },
    { what: 'migrations', detail: /^\d+ applied$/ },
    ...['HOOKS_ADDR', 'LINKS_ADDR', 'OPS_ADDR'].map((what) => ({ what })),
  ])
  t.equal(findings.length, 10)
  t.ok(findings.every(({ ok, level }) => ok === (level === 'ok')))
})

await eachBackend(
  t,
  'signing secrets that the present key opens, or not',
  async (t: Test, backend) => {
    const env = { ...FREE, ...(await backend.env(t)) }
    const key = { GATEHOUSE_SECRET_KEY: secretKey() }
    for (const name of ['one', 'two']) {
      const args = ['provider', 'add', name, '--signed']
      const made = await runCli(args, { env: { ...env, ...key }, secretShown: true })
      t.equal(made.code, 0, made.stderr)
      keepSecret('signing', made.stdout.trim())
    }
    const fine = await runCli(['check'], { env: { ...env, ...key } })
    t.match(fine, { code: 0, stdout: /^ok {4}signing secrets: 2 can be read$/m })

    const other = { ...env, GATEHOUSE_SECRET_KEY: secretKey() }
    const wrong = await runCli(['check'], { env: other })
    t.match(wrong, { code: 1, stderr: '' })
    t.same(wrong.stdout.match(/^FAIL.*$/gm), [
      unreadable('one', ANOTHER),
      unreadable('two', ANOTHER),
    ])
    const missing = await runCli(['check'], { env })
    t.match(missing, { code: 1, stderr: '' })
    t.same(missing.stdout.match(/^FAIL.*$/gm), [
      unreadable('one', NO_KEY),
      unreadable('two', NO_KEY),
    ])

    const args = ['provider', 'rotate', 'one', '--overlap', '1h']
    const rotated = await runCli(args, { env: other, secretShown: true })
    t.equal(rotated.code, 0, rotated.stderr)
    keepSecret('signing', rotated.stdout.trim())
    const half = await runCli(['check'], { env: other })
    t.equal(half.code, 1)
    const lines = half.stdout.match(/^FAIL.*$/gm) ?? []
    t.match(lines, [
      /^FAIL {2}generic:one: its previous signing secret/,
      /^FAIL {2}generic:two: its sig/,
    ])
  },
)

t.test('what is wrong is said, with code 1 and without the password', async (t) => {
  const password = secret('database-password')
  const port = await freePort()
  const url = `postgres://gatehouse:${password}@127.0.0.1:${port}/none`
  const env = { ...FREE, DATABASE_URL: url, GATEHOUSE_DATA_DIR: await temporaryFolder(t) }
  const lines = await runCli(['check'], { env })
  t.match(lines, {
    code: 1,
    stderr: '',
    stdout: /\nFAIL {2}database: PostgreSQL server: .*ECONNREFUSED.+\nok {4}HOOKS_ADDR/,
  })
  t.notOk(lines.stdout.includes(password))
  for (const command of [['migrate'], ['provider', 'list'], ['serve', 'hooks']]) {
    const result = await runCli(command, { env })
    t.match(result, { code: 1, stdout: '', stderr: /^gatehouse: [^\n]+\n$/ }, command.join(' '))
    t.notOk(result.stderr.includes(password))
  }
})

t.test('beside a running server the commands ask it through its socket', async (t) => {
  const env: Env = { ...FREE, ...(await embedded.env(t)) }
  const server = await startServerProcess(t, { services: ['hooks'], env })
  const socket = join(env['GATEHOUSE_DATA_DIR'] ?? '', 'control.sock')
  const { mode } = await stat(socket)
  t.equal((mode & 0o777).toString(8), '600', 'for this user only')
  // What concerns the caller is its own: its addresses, its files.
  const { host } = new URL(server.hooks)
  const beside = await check({ ...env, HOOKS_ADDR: host, OPS_RUNNER: 'cli', PATH: '/nowhere' })
  t.equal(beside.code, 0)
  t.match(beside.about('migrations'), [/^ok \d+ applied$/])
  t.match(beside.about('HOOKS_ADDR'), [`ok ${host} is held by a running gatehouse `])
  t.match(beside.about('runner'), ['warn cli, and no session can run: '])
  t.match(beside.about('configuration'), ['ok variables set: 5'])
  t.match(await runCli(['migrate'], { env }), { code: 0, stdout: 'nothing to apply\n', stderr: '' })

  const second = await runCli(['serve', 'hooks'], { env: { ...env, HOOKS_ADDR: '127.0.0.1:0' } })
  t.match(second, { code: 1, stdout: '', stderr: /^gatehouse: .*held by another process.*\n$/ })

  await server.kill()
  t.ok(existsSync(socket), 'a crash leaves the socket')
  const alone = await runCli(['provider', 'add', 'later', '--open'], { env })
  t.match(alone, { code: 0, stderr: /^generic:later created/ })
  const next = await startServerProcess(t, { services: ['hooks'], env })
  const listed = await runCli(['provider', 'list'], { env })
  t.match(listed, { code: 0, stdout: /^generic:later /m }, 'the next server opens it anew')
  await next.stop()
  t.notOk(existsSync(socket), 'and takes it away when it stops')
})
