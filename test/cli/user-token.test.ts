import { t } from 'tap'
import type { Test } from 'tap'
import { backends, onPostgres } from '../helpers/backends.ts'
import { refuseCommands, runCli } from '../helpers/cli.ts'
import type { CliResult } from '../helpers/cli.ts'
import { request } from '../helpers/http.ts'
import type { Response } from '../helpers/http.ts'
import { fillTokens } from '../helpers/links.ts'
import type { Env } from '../helpers/program.ts'
import { keepSecret } from '../helpers/secrets.ts'
import { startServer } from '../helpers/server.ts'
import { contentsOf } from '../helpers/transfer.ts'

const EMAIL = 'ann@example.com'
const DAY_MS = 86_400_000
const [, postgres] = backends

const user = (env: Env, ...args: readonly string[]): Promise<CliResult> =>
  runCli(['user', ...args], { env })

const token = (env: Env, ...args: readonly string[]): Promise<CliResult> =>
  runCli(['token', ...args], { env, secretShown: args[0] === 'create' })

/** The token: the last line of stdout, and here the only one. */
function tokenOf(t: Test, { code, stdout, stderr }: CliResult): string {
  t.equal(code, 0)
  t.match(stdout, /^gh_[0-9A-Za-z]{43}\n$/, 'the token stands alone on stdout')
  const made = keepSecret('api-token', stdout.trim())
  t.notOk(stderr.includes(made), 'and nowhere else')
  return made
}

function call(base: string, bearer: string, method: string, path: string, body?: object) {
  const headers = { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' }
  const options = { method, headers, ...(body && { body: JSON.stringify(body) }) }
  return request(`${base}/api/v1${path}`, options)
}

const status = async (asked: Promise<Response>): Promise<number> => (await asked).status

t.test('two commands on an empty database, then the first request', async (t) => {
  const env = await postgres.emptyEnv(t)
  t.match(await user(env, 'add', EMAIL), { code: 0 })
  t.match(await token(env, 'list', EMAIL, '--json'), { code: 0, stdout: '[]\n', stderr: '' })
  const made = tokenOf(t, await token(env, 'create', EMAIL))
  const { links: base } = await startServer(t, { services: ['links'], env })
  const created = await call(base, made, 'POST', '/links', { slug: 'go', url: 'https://go.dev/' })
  t.match(created.json(), { slug: 'go', owners: [{ email: EMAIL, is_primary: true }] })
  t.match(await request(`${base}/go`), { status: 302, headers: { location: 'https://go.dev/' } })
})

await onPostgres(t, 'user and token commands beside a server', async (t: Test, backend) => {
  const env = await backend.env(t)
  const server = await startServer(t, { services: ['links'], env })
  await t.test('users', (t) => users(t, env))
  await t.test('tokens', (t) => tokens(t, env, server.links))
})

async function users(t: Test, env: Env): Promise<void> {
  const added = await user(env, 'add', ' Ann@Example.com', '--name', 'Ann Example')
  t.match(added, { code: 0, stdout: '', stderr: /^ann@example\.com is a user now; .*\n$/ })
  t.match(added.stderr, 'gatehouse token create ann@example.com', 'says what comes next')
  t.match(await user(env, 'add', 'root@example.com', '--admin'), { code: 0, stdout: '' })

  const listed = await user(env, 'list', '--json')
  t.match(listed, { code: 0, stderr: '' })
  const people: readonly Readonly<Record<string, unknown>>[] = JSON.parse(listed.stdout)
  const [ann, ...others] = people
  t.same(Object.keys(ann ?? {}), [
    'id',
    'email',
    'display_name',
    'role',
    'created_at',
    'disabled_at',
  ])
  t.match(ann, { email: 'ann@example.com', display_name: 'Ann Example', role: 'user' })
  t.match(ann, { id: /^[0-9a-f-]{36}$/, created_at: /^\d{4}-.*\.\d{3}Z$/ })
  t.match(others, [
    // A server makes the local operator when it starts.
    { email: 'operator@localhost', role: 'admin' },
    { email: 'root@example.com', display_name: 'root', role: 'admin' },
  ])
  t.equal(others.length, 2)

  await refuseCommands(t, { env, state: () => contentsOf(postgres, env) }, [
    [['user', 'add', 'ANN@example.com'], 1, /there is a user with this e-mail address already/],
    [['user', 'add', 'ann'], 1, /must look like name@example\.com/],
    [['user', 'add', 'bob@example.com', '--name', 'x'.repeat(101)], 1, /1 to 100 characters/],
    [
      ['user', 'role', 'nobody@example.com', 'admin'],
      1,
      /no user has the e-mail address "nobody@example\.com"/,
    ],
  ])

  const promoted = await user(env, 'role', 'Ann@example.com', 'admin')
  t.match(promoted, { code: 0, stdout: '', stderr: 'ann@example.com has role admin now\n' })
  t.match(await user(env, 'role', 'root@example.com', 'user'), { code: 0 })
  const { stdout } = await user(env, 'list')
  t.match(
    stdout,
    /^EMAIL +NAME +ROLE +CREATED +DISABLED\nann@example\.com +Ann Example +admin +\d{4}-/,
  )
  t.match(stdout, /^root@example\.com +root +user +\d{4}-/m)
}

async function tokens(t: Test, env: Env, base: string): Promise<void> {
  const usual = await token(env, 'create', 'Ann@Example.com')
  const full = tokenOf(t, usual)
  t.match(
    usual.stderr,
    /^token "command line" of ann@example\.com, scope full, is shown this once/,
  )
  t.equal(await status(call(base, full, 'GET', '/users/me')), 200)

  const other = ['--name', 'ci job', '--scope', 'create', '--expires', '30d']
  const limited = await token(env, 'create', EMAIL, ...other)
  t.match(
    limited.stderr,
    /^token "ci job" of .*, scope create, until \d{4}-.*Z, is shown this once/,
  )
  const creator = tokenOf(t, limited)
  t.equal(await status(call(base, creator, 'GET', '/links')), 403, 'beyond its scope')
  const link = { slug: 'made', url: 'https://made.example.com/' }
  t.equal(await status(call(base, creator, 'POST', '/links', link)), 201)

  const listed = await token(env, 'list', EMAIL, '--json')
  t.match(listed, { code: 0, stderr: '' })
  const rows: readonly Readonly<Record<string, string>>[] = JSON.parse(listed.stdout)
  t.match(rows, [
    { name: 'ci job', scope: 'create', expires_at: /Z$/ },
    { name: 'command line', scope: 'full', expires_at: null },
  ])
  const [first] = rows
  const lives = Date.parse(first?.['expires_at'] ?? '') - Date.parse(first?.['created_at'] ?? '')
  t.equal(lives, 30 * DAY_MS, 'from now on')
  const fields = ['id', 'name', 'scope', 'created_at', 'expires_at', 'last_used_at']
  t.same(Object.keys(first ?? {}), fields, 'and no hash')
  const table = (await token(env, 'list', EMAIL)).stdout
  t.match(table, /^ID +NAME +SCOPE +CREATED +EXPIRES +LAST USED\n[0-9a-f-]{36} +ci job +create /)
  t.match(table, /command line +full +\S+ +never +/)

  const dated = ['--scope', 'read', '--expires', '2099-01-31T12:00:00Z']
  tokenOf(t, await token(env, 'create', 'root@example.com', ...dated))
  const [read] = JSON.parse((await token(env, 'list', 'root@example.com', '--json')).stdout)
  t.match(read, { scope: 'read', expires_at: '2099-01-31T12:00:00.000Z', last_used_at: null })

  const id = first?.['id'] ?? ''
  const revoked = await token(env, 'revoke', id)
  t.match(revoked, { code: 0, stdout: '', stderr: `token ${id} is revoked\n` })
  t.equal(await status(call(base, creator, 'GET', '/users/me')), 401, 'it is no token any more')
  t.equal(await status(call(base, full, 'GET', '/users/me')), 200, 'the other one is')

  await fillTokens(env['DATABASE_URL'] ?? '', EMAIL, 1_000)
  const bob = /no user has the e-mail address "bob@example\.com"/
  const count = () => postgres.query(env, 'select count(*)::int as n from links.tokens')
  await refuseCommands(t, { env, state: count }, [
    [['token', 'create', 'bob@example.com'], 1, /"bob@.*gatehouse user add EMAIL/],
    [['token', 'create', 'bob'], 1, /no user has the e-mail address "bob"/],
    [['token', 'list', 'bob@example.com'], 1, bob],
    [['token', 'revoke', id], 1, `there is no token ${id}`],
    [
      ['token', 'create', EMAIL],
      1,
      'a user may have 1,000 tokens; revoke one that is not needed first',
    ],
  ])
}
