import { t, type Test } from 'tap'
import { postgres } from '../helpers/backends.ts'
import { refuseCommands, refusedRows, runCli, type CliResult } from '../helpers/cli.ts'
import { request } from '../helpers/http.ts'
import { modern } from '../helpers/mcp.ts'
import type { Env } from '../helpers/program.ts'
import { keepSecret } from '../helpers/secrets.ts'
import { startServer } from '../helpers/server.ts'
import { until } from '../helpers/until.ts'

// The commands that make what lets people and programs in: providers, endpoints, users and tokens.

const EMAIL = 'ann@example.com'
const DAY_MS = 86_400_000

type Row = Readonly<Record<string, unknown>>

/** Runs a command whose words have a space between them; what it prints may be a secret. */
const run = (env: Env, words: string) => runCli(words, { env, secretShown: true })

const rowsOf = async (env: Env, words: string): Promise<readonly Row[]> =>
  JSON.parse((await run(env, `${words} --json`)).stdout)

/** The secret that a command has made: its last line of stdout, and here the only one. */
function madeBy(t: Test, { code, stdout, stderr }: CliResult, form = /^[\w-]{43}\n$/) {
  t.equal(code, 0, stderr)
  t.match(stdout, form, 'it stands alone on stdout')
  const made = keepSecret('made', stdout.trim())
  t.notOk(stderr.includes(made), 'and nowhere else')
  return made
}

const madeToken = (t: Test, ended: CliResult) => madeBy(t, ended, /^gh_[0-9A-Za-z]{43}\n$/)

t.test('provider and endpoint beside a server', async (t) => {
  const env = await postgres.env(t)
  const { hooks: base } = await startServer(t, { services: ['hooks'], env })

  /** As soon as the server has heard of the change. */
  const delivers = (name: string, token: string, status: number) => {
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` }
    const to = { method: 'POST', headers, body: '{}' }
    const ask = async () => (await request(`${base}/webhooks/generic/${name}`, to)).status
    return until(async () => (await ask()) === status, `${name} to answer ${status}`)
  }

  const added = await run(env, 'provider add ci')
  t.match(added, { stderr: /generic:ci created, disabled.*provider enable ci/ })
  const first = madeBy(t, added)
  await delivers('ci', first, 403)
  const rotated = await run(env, 'provider rotate generic:ci --overlap 0')
  t.match(rotated, { stderr: 'generic:ci has a new token' })
  const second = madeBy(t, rotated)
  for (const [words, stderr, name, status] of [
    ['enable ci', 'ci is enabled\n', 'ci', 202],
    ['disable ci', 'ci is disabled\n', 'ci', 403],
    ['remove ci', 'ci is removed; its events stay', 'ci', 404],
    ['add anybody --open --enable', 'generic:anybody created, enabled\n', 'anybody', 202],
  ] as const) {
    t.match(await run(env, `provider ${words}`), { code: 0, stdout: '', stderr })
    await delivers(name, second, status)
    if (words === 'enable ci') await delivers('ci', first, 403)
  }
  const log = await request(`${base}/log?provider=generic:ci`)
  t.match(log.text, /data-id="\d+"/)

  const token = madeBy(t, await run(env, 'endpoint add agent'))
  const status = async () =>
    (await modern({ url: `${base}/mcp/agent`, token }, 'tools/list')).status
  await until(async () => (await status()) === 200, 'the endpoint')
  t.match(await run(env, 'endpoint revoke agent'), { code: 0, stderr: 'agent is revoked' })
  await until(async () => (await status()) === 401, 'its end')
})

t.test('lists of providers and endpoints, and what is refused', async (t) => {
  const env = { ...(await postgres.env(t)), HOOKS_BASE_URL: 'https://hooks.example.com' }
  madeBy(t, await run(env, 'provider add ready --enable'))
  await run(env, 'provider add anybody --open --enable')
  const found = await rowsOf(env, 'provider list')
  const names = found.map(({ name }) => name).join(' ')
  t.equal(names, 'chat code_host payments generic:anybody generic:ready')
  t.match(found[0], { trust_mode: 'signed', enabled: false, secret_status: 'missing' })
  const open = { trust_mode: 'open', enabled: true, secret_status: 'none-by-design' }
  t.match(found[3], {
    ...open,
    family: 'webhook',
    path: '/webhooks/generic/anybody',
    channel: null,
  })
  t.match(found[4], { trust_mode: 'token', enabled: true, secret_status: 'configured' })
  const table = await run(env, 'provider list')
  t.match(table.stdout, /^NAME +TRUST +STATE +SECRET +PATH\nchat .*(\n.*){3}\ngeneric:ready .*\n$/)

  const added = await run(env, 'endpoint add desk --allow replay')
  madeBy(t, added)
  t.same(JSON.parse(added.stderr.slice(added.stderr.indexOf('{'))), {
    mcpServers: {
      'gatehouse-desk': {
        type: 'http',
        url: 'https://hooks.example.com/mcp/desk',
        headers: { Authorization: 'Bearer TOKEN' },
      },
    },
  })
  for (const [name, HOOKS_ADDR, said] of [
    ['agent', '[::1]:8080', '"url": "http://[::1]:8080/mcp/agent"'],
    ['hidden', 'unix:/tmp/none.sock', '\nHOST stands for '],
    ['free', '127.0.0.1:0', '"http://HOST/mcp/free"'],
  ] as const) {
    const made = await run({ ...env, HOOKS_BASE_URL: '', HOOKS_ADDR }, `endpoint add ${name}`)
    madeBy(t, made)
    t.match(made.stderr, said)
  }
  const never = { created_at: /Z$/, last_used_at: null }
  t.match(await rowsOf(env, 'endpoint list'), [
    { name: 'agent', may_replay: false, ...never },
    { name: 'desk', may_replay: true, ...never },
  ])
  const { stdout } = await run(env, 'endpoint list')
  t.match(stdout, /^NAME +MAY +CREATED +LAST USED\nagent +read +.*never\ndesk +read,replay +/)

  const there = 'There is a provider "generic:ready" already'
  const signed = /belongs to a signed provider/
  const nobody = 'There is no provider "generic:nobody"'
  const state = async () => [
    await rowsOf(env, 'provider list'),
    await rowsOf(env, 'endpoint list'),
  ]
  await refuseCommands(t, { env, state }, [
    ...refusedRows('provider', 1, [
      ['add ready', there],
      ['add generic:ready', there],
      ['add code_host', signed],
      ['add generic:chat', signed],
      ['rotate anybody', 'There is no provider "generic:anybody" with a token'],
      ['rotate chat', 'Signing secrets are stored encrypted: set GATEHOUSE_SECRET_KEY'],
      ['remove chat', 'There is no provider "chat"'],
    ]),
    ...['UPPER', '_first', 'a'.repeat(65), 'queue:x'].map(
      (name) => [`provider add ${name}`, 1, 'The name must be'] as const,
    ),
    ...['enable', 'disable', 'rotate', 'remove'].map(
      (action) => [`provider ${action} nobody`, 1, nobody] as const,
    ),
    ['endpoint add agent', 1, 'There is an endpoint "agent" already'],
    ['endpoint add Agent', 1, 'The name must be 1 to 64 of a-z'],
    ['endpoint revoke none', 1, 'There is no endpoint "none"'],
  ])
})

t.test('users and tokens: two commands, then the first request', async (t) => {
  const env = await postgres.emptyEnv(t)
  const added = await run(env, 'user add Ann@Example.com --name Ann')
  t.match(added, { code: 0, stdout: '', stderr: 'ann@example.com is a user now; ' })
  t.match(added.stderr, 'gatehouse token create ann@example.com', 'says what comes next')
  t.same(await rowsOf(env, 'token list ann@example.com'), [])
  const usual = await run(env, 'token create Ann@Example.com')
  const full = madeToken(t, usual)
  t.match(usual.stderr, 'token "command line" of ann@example.com, scope full, is shown this')
  const { links: base } = await startServer(t, { services: ['links'], env })
  const call = async (token: string, method: string, path: string, body?: object) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const options = { method, headers, ...(body && { body: JSON.stringify(body) }) }
    return (await request(`${base}/api/v1${path}`, options)).status
  }
  t.equal(await call(full, 'POST', '/links', { slug: 'go', url: 'https://go.dev/' }), 201)
  t.match(await request(`${base}/go`), { status: 302, headers: { location: 'https://go.dev/' } })

  t.match(await run(env, 'user add root@example.com --admin'), { code: 0, stdout: '' })
  const people = await rowsOf(env, 'user list')
  t.match(people, [
    { email: EMAIL, display_name: 'Ann', role: 'user', disabled_at: null },
    // A server makes the local operator when it starts.
    { email: 'operator@localhost', role: 'admin' },
    { email: 'root@example.com', display_name: 'root', role: 'admin' },
  ])
  t.equal(people.length, 3)
  const promoted = await run(env, 'user role Ann@example.com admin')
  t.same(promoted, { code: 0, stdout: '', stderr: 'ann@example.com has role admin now\n' })
  const list = await run(env, 'user list')
  t.match(list.stdout, /^EMAIL +NAME +ROLE +CREATED +DISABLED\nann@\S+ +Ann +admin /)

  const limited = await run(env, `token create ${EMAIL} --name ci --scope create --expires 30d`)
  t.match(limited.stderr, /^token "ci" of .*, scope create, until \d{4}-.*Z, is shown this once/)
  const creator = madeToken(t, limited)
  t.equal(await call(creator, 'GET', '/links'), 403, 'beyond its scope')
  t.equal(await call(creator, 'POST', '/links', { slug: 'made', url: 'https://m.test/' }), 201)
  const rows = await rowsOf(env, `token list ${EMAIL}`)
  t.match(rows, [
    { name: 'ci', scope: 'create', expires_at: /Z$/ },
    { name: 'command line', scope: 'full', expires_at: null },
  ])
  const [{ id, created_at, expires_at, ...more } = {}] = rows
  const lives = Date.parse(String(expires_at)) - Date.parse(String(created_at))
  t.equal(lives, 30 * DAY_MS, 'from now on')
  t.same(Object.keys(more), ['name', 'scope', 'last_used_at'], 'and no hash')
  const table = (await run(env, `token list ${EMAIL}`)).stdout
  t.match(table, /^ID +NAME +SCOPE +CREATED +EXPIRES +LAST USED\n.* ci +create /)
  t.match(table, /command line +full +\S+ +never +/)
  const revoked = await run(env, `token revoke ${id}`)
  t.same(revoked, { code: 0, stdout: '', stderr: `token ${id} is revoked\n` })
  t.equal(await call(creator, 'GET', '/users/me'), 401, 'it is no token any more')
  t.equal(await call(full, 'GET', '/users/me'), 200, 'the other one is')

  const bob = 'no user has the e-mail address "bob@example.com"'
  const tokens = () => postgres.query(env, 'select count(*)::int as n from links.tokens')
  const users = async () => [await rowsOf(env, 'user list'), await tokens()]
  await refuseCommands(t, { env, state: users }, [
    ...refusedRows('user', 1, [
      ['add ANN@example.com', 'there is a user with this e-mail address already'],
      ['role bob@example.com admin', bob],
    ]),
    ...refusedRows('user', 2, [
      ['add ann', 'EMAIL must look like name@example.com'],
      [`add bob@example.com --name ${'x'.repeat(101)}`, '--name must have 1 to 100 characters'],
    ]),
    ...refusedRows('token', 1, [
      ['create bob@example.com', `${bob}; add one with: gatehouse user add EMAIL`],
      ['list bob@example.com', bob],
      [`revoke ${id}`, `there is no token ${id}`],
    ]),
  ])
})
