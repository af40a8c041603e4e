import { t } from 'tap'
import type { Test } from 'tap'
import { backends, onPostgres } from '../helpers/backends.ts'
import { runCli } from '../helpers/cli.ts'
import type { CliResult } from '../helpers/cli.ts'
import { request } from '../helpers/http.ts'
import type { Response } from '../helpers/http.ts'
import { fillTokens } from '../helpers/links-setup.ts'
import type { Env } from '../helpers/program.ts'
import { keepSecret } from '../helpers/secrets.ts'
import { startServer } from '../helpers/server.ts'

const EMAIL = 'ann@example.com'
const DAY_MS = 86_400_000

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

await onPostgres(t, 'two commands, then the first request', async (t: Test, backend) => {
  const env = await backend.env(t)
  t.match(await runCli(['user', 'add', EMAIL], { env }), { code: 0 })
  const made = tokenOf(t, await token(env, 'create', EMAIL))
  const { links: base } = await startServer(t, { services: ['links'], env })
  const created = await call(base, made, 'POST', '/links', { slug: 'go', url: 'https://go.dev/' })
  t.match(created.json(), { slug: 'go', owners: [{ email: EMAIL, is_primary: true }] })
  t.match(await request(`${base}/go`), { status: 302, headers: { location: 'https://go.dev/' } })
})

await onPostgres(t, 'token commands beside a running server', async (t: Test, backend) => {
  const env = await backend.env(t)
  const { links: base } = await startServer(t, { services: ['links'], env })
  t.match(await runCli(['user', 'add', EMAIL], { env }), { code: 0 })
  const status = async (asked: Promise<Response>): Promise<number> => (await asked).status

  const usual = await token(env, 'create', 'Ann@Example.com')
  const full = tokenOf(t, usual)
  t.match(usual.stderr, /^token "command line" of ann@example\.com, scope full, is shown this once/)
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

  const id = first?.['id'] ?? ''
  const revoked = await token(env, 'revoke', id)
  t.match(revoked, { code: 0, stdout: '', stderr: `token ${id} is revoked\n` })
  t.equal(await status(call(base, creator, 'GET', '/users/me')), 401, 'it is no token any more')
  t.equal(await status(call(base, full, 'GET', '/users/me')), 200, 'the other one is')
  await refusals(t, env, id)
})

t.test('token commands in a process of their own', async (t) => {
  const [, postgres] = backends
  const env = await postgres.env(t)
  t.match(await runCli(['user', 'add', EMAIL], { env }), { code: 0 })
  t.match(await token(env, 'list', EMAIL, '--json'), { code: 0, stdout: '[]\n', stderr: '' })
  tokenOf(
    t,
    await token(env, 'create', EMAIL, '--scope', 'read', '--expires', '2099-01-31T12:00:00Z'),
  )
  const [row] = JSON.parse((await token(env, 'list', EMAIL, '--json')).stdout)
  t.match(row, { scope: 'read', expires_at: '2099-01-31T12:00:00.000Z', last_used_at: null })
  t.match(await token(env, 'revoke', row.id), { code: 0 })
  await refusals(t, env, row.id)
  await fillTokens(env['DATABASE_URL'] ?? '', EMAIL, 1_000)
  t.match(await token(env, 'create', EMAIL), {
    ...{ code: 1, stdout: '' },
    stderr: 'gatehouse: a user may have 1,000 tokens; revoke one that is not needed first\n',
  })
})

async function refusals(t: Test, env: Env, gone: string): Promise<void> {
  const cases: readonly (readonly [readonly string[], RegExp])[] = [
    [
      ['create', 'bob@example.com'],
      /no user has the e-mail address "bob@.*gatehouse user add EMAIL/,
    ],
    [['create', 'bob'], /no user has the e-mail address "bob"/],
    [['list', 'bob@example.com'], /no user has the e-mail address "bob@example\.com"/],
    [['revoke', gone], new RegExp(`there is no token ${gone}`)],
  ]
  for (const [args, reason] of cases) {
    const { code, stdout, stderr } = await token(env, ...args)
    t.same({ code, stdout, lines: stderr.split('\n').length }, { code: 1, stdout: '', lines: 2 })
    t.match(stderr, new RegExp(`^gatehouse: .*${reason.source}`), args.join(' '))
  }
}

t.test('wrong usage', async (t) => {
  const cases: readonly (readonly [readonly string[], RegExp])[] = [
    [[], /Missing action/],
    [['show', EMAIL], /Unknown action "show"/],
    [['create'], /Missing EMAIL/],
    [['list'], /Missing EMAIL/],
    [['revoke'], /Missing ID/],
    [['revoke', 'one'], /ID must be the id of a token; see: gatehouse token list EMAIL/],
    [['create', EMAIL, 'x'], /Too many arguments/],
    [['create', EMAIL, '--json'], /"token create" takes no --json/],
    [['list', EMAIL, '--scope', 'read'], /"token list" takes no --scope/],
    [['create', EMAIL, '--scope', 'write'], /--scope must be full, read or create/],
    [['create', EMAIL, '--name', ' '], /--name must have 1 to 100 characters/],
    [['create', EMAIL, '--name', 'a\u0007'], /--name must have no control characters/],
    [['create', EMAIL, '--expires', 'soon'], /--expires must be a time with its zone such as .*7d/],
    [['create', EMAIL, '--expires', '999999999d'], /--expires must be a time with .*7d/],
    [['create', EMAIL, '--expires', '3000000d'], /--expires must be a time with .*7d/],
    [['create', EMAIL, '--expires', '2020-01-31T12:00:00Z'], /--expires must be in the future/],
    [['create', EMAIL, '--expires', '0'], /--expires must be in the future/],
  ]
  for (const [args, reason] of cases) {
    const result = await runCli(['token', ...args])
    t.match(result, { code: 2, stdout: '', stderr: reason }, args.join(' '))
  }
})
