import { existsSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { t } from 'tap'
import type { Test } from 'tap'
import { backends, eachBackend } from '../helpers/backends.ts'
import { runCli } from '../helpers/cli.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { freePort } from '../helpers/postgres-process.ts'
import { keepSecret, secret } from '../helpers/secrets.ts'
import { secretKey } from '../helpers/senders-setup.ts'
import { startServer } from '../helpers/server.ts'

const [embedded, postgres] = backends
const OPEN = `select count(*)::int as n from pg_namespace where nspname in ('hooks', 'gatehouse')`
const ANOTHER = 'sealed with another key'
const NO_KEY = 'GATEHOUSE_SECRET_KEY is not set'

function unreadable(name: string, problem: string): string {
  return (
    `FAIL  generic:${name}: its signing secret can't be read (${problem}); set GATEHOUSE_SECRET_KEY to ` +
    `the key that it was stored with, or make a new one: gatehouse provider rotate generic:${name}`
  )
}

t.test('nothing is created by looking', async (t) => {
  const directory = join(await temporaryFolder(t), 'deep', 'data')
  const env = { GATEHOUSE_DATA_DIR: directory }
  const fresh = await runCli(['check'], { env })
  t.match(fresh, { code: 0, stderr: '' })
  t.match(
    fresh.stdout,
    /^ok {4}configuration: \d+ variables\nok {4}database: .*not created yet.*\n$/,
  )
  t.notOk(existsSync(directory), 'no folder')

  const server = await postgres.env(t)
  const { code, stdout } = await runCli(['check'], { env: server })
  t.equal(code, 0)
  t.match(stdout, /^ok {4}database: PostgreSQL server$/m)
  t.match(stdout, /^ok {4}migrations: 0 applied, \d+ to be applied/m)
  t.same(await postgres.query(server, OPEN), [{ n: 0 }], 'no schema')
})

await eachBackend(t, 'a migrated database is fine', async (t: Test, backend) => {
  const env = await backend.env(t)
  await runCli(['migrate'], { env })
  const { code, stdout, stderr } = await runCli(['check', '--json'], { env })
  t.same({ code, stderr }, { code: 0, stderr: '' })
  const findings: readonly unknown[] = JSON.parse(stdout)
  t.match(findings, [
    { ok: true, what: 'configuration', detail: /^\d+ variables$/ },
    {
      ok: true,
      what: 'database',
      detail: backend.name === 'embedded' ? /^embedded in / : /Postgre/,
    },
    { ok: true, what: 'migrations', detail: /^\d+ applied$/ },
  ])
  t.equal(findings.length, 3)
})

await eachBackend(
  t,
  'signing secrets that the present key opens, or not',
  async (t: Test, backend) => {
    const env = await backend.env(t)
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
  const env = { DATABASE_URL: `postgres://gatehouse:${password}@127.0.0.1:${port}/none` }
  const lines = await runCli(['check'], { env })
  t.match(lines, {
    code: 1,
    stderr: '',
    stdout: /^ok {4}configuration: .*\nFAIL {2}database: .+\n$/,
  })
  const json = await runCli(['check', '--json'], { env })
  t.equal(json.code, 1)
  const findings: unknown = JSON.parse(json.stdout)
  t.match(findings, [{ ok: true }, { ok: false, what: 'database', detail: /ECONNREFUSED/ }])
  for (const command of [['migrate'], ['provider', 'list'], ['serve', 'hooks']]) {
    const result = await runCli(command, { env: { ...env, HOOKS_ADDR: '127.0.0.1:0' } })
    t.match(result, { code: 1, stdout: '', stderr: /^gatehouse: [^\n]+\n$/ }, command.join(' '))
    t.notOk(result.stderr.includes(password))
  }
})

t.test('beside a running server the commands ask it through its socket', async (t) => {
  const env = await embedded.env(t)
  const server = await startServer(t, { services: ['hooks'], env })
  const socket = join(env['GATEHOUSE_DATA_DIR'] ?? '', 'control.sock')
  const { mode } = await stat(socket)
  t.equal((mode & 0o777).toString(8), '600', 'for this user only')
  const check = await runCli(['check'], { env })
  t.match(check, { code: 0, stderr: '', stdout: /^ok {4}migrations: \d+ applied$/m })
  t.match(await runCli(['migrate'], { env }), { code: 0, stdout: 'nothing to apply\n', stderr: '' })

  const second = await runCli(['serve', 'hooks'], { env: { ...env, HOOKS_ADDR: '127.0.0.1:0' } })
  t.match(second, { code: 1, stdout: '', stderr: /^gatehouse: .*held by another process.*\n$/ })

  await server.kill()
  t.ok(existsSync(socket), 'a crash leaves the socket')
  const alone = await runCli(['provider', 'add', 'later', '--open'], { env })
  t.match(alone, { code: 0, stderr: /^generic:later created/ })
  const next = await startServer(t, { services: ['hooks'], env })
  const listed = await runCli(['provider', 'list'], { env })
  t.match(listed, { code: 0, stdout: /^generic:later /m }, 'the next server opens it anew')
  await next.stop()
  t.notOk(existsSync(socket), 'and takes it away when it stops')
})
