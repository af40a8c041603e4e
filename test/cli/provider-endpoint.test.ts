import { createHash } from 'node:crypto'
import { t } from 'tap'
import type { Test } from 'tap'
import { eachBackend, onPostgres } from '../helpers/backends.ts'
import type { Backend } from '../helpers/backends.ts'
import { refuseCommands, runCli } from '../helpers/cli.ts'
import type { CliResult } from '../helpers/cli.ts'
import { request } from '../helpers/http.ts'
import { modern } from '../helpers/mcp.ts'
import type { Env } from '../helpers/program.ts'
import { keepSecret } from '../helpers/secrets.ts'
import { startServer } from '../helpers/server.ts'
import { until } from '../helpers/until.ts'

/** A running server, and how the commands reach its database. */
type Way = { readonly env: Env; readonly backend: Backend; readonly base: string }

const STORED = 'select name, trust_mode, enabled, token_hash from hooks.providers where name = $1'
const STATUS_FIELDS = [
  'name',
  'family',
  'trust_mode',
  'enabled',
  'secret_status',
  'path',
  'channel',
]

await eachBackend(t, 'hooks commands beside a running server', async (t: Test, backend) => {
  const env = await backend.env(t)
  const { hooks: base } = await startServer(t, { services: ['hooks'], env })
  const way: Way = { env, backend, base }
  await t.test('provider add, enable, rotate, disable, remove', (t) => lifeOfToken(t, way))
  await t.test('provider add --open --enable', (t) => lifeOfOpen(t, way))
  await t.test('provider: what is refused', (t) => refusedProviders(t, way))
  await t.test('provider list', (t) => lists(t, way))
  await t.test('endpoint add, list, revoke', (t) => lifeOfEndpoint(t, way))
})

async function lifeOfToken(t: Test, way: Way): Promise<void> {
  const added = await provider(way, 'add', 'ci')
  t.match(added, { code: 0, stderr: /generic:ci created, disabled.*provider enable ci/ })
  const first = tokenOf(t, added)
  await expectStored(t, way, 'generic:ci', { enabled: false, token_hash: hash(first) })
  await expectDelivery(t, way, 'ci', first, 403)

  t.match(await provider(way, 'enable', 'ci'), { code: 0, stdout: '', stderr: 'ci is enabled\n' })
  await expectDelivery(t, way, 'ci', first, 202)

  const rotated = await provider(way, 'rotate', 'generic:ci', '--overlap', '0')
  t.match(rotated, { code: 0, stderr: /generic:ci has a new token/ })
  const second = tokenOf(t, rotated)
  t.not(second, first)
  await expectStored(t, way, 'generic:ci', { enabled: true, token_hash: hash(second) })
  await expectDelivery(t, way, 'ci', first, 403)
  await expectDelivery(t, way, 'ci', second, 202)

  t.match(await provider(way, 'disable', 'ci'), {
    code: 0,
    stdout: '',
    stderr: 'ci is disabled\n',
  })
  await expectDelivery(t, way, 'ci', second, 403)

  const removed = await provider(way, 'remove', 'ci')
  t.match(removed, { code: 0, stdout: '', stderr: /ci is removed; its events stay/ })
  await expectDelivery(t, way, 'ci', second, 404)
  const log = await request(`${way.base}/log?provider=generic:ci`)
  const kept = [...log.text.matchAll(/data-id="\d+"/g)].length
  t.ok(kept >= 2, `its ${kept} events stay`)
}

async function lifeOfOpen(t: Test, way: Way): Promise<void> {
  const added = await provider(way, 'add', 'anybody', '--open', '--enable')
  t.match(added, { code: 0, stdout: '', stderr: 'generic:anybody created, enabled\n' })
  await expectStored(t, way, 'generic:anybody', {
    trust_mode: 'open',
    enabled: true,
    token_hash: null,
  })
  await expectDelivery(t, way, 'anybody', undefined, 202)
  await expectDelivery(t, way, 'anybody', 'whatever-token', 202)

  const made = await provider(way, 'add', 'ready', '--enable')
  t.match(made, { code: 0, stderr: 'generic:ready created, enabled\n' })
  await expectDelivery(t, way, 'ready', tokenOf(t, made), 202)
}

async function refusedProviders(t: Test, { env }: Way): Promise<void> {
  const name = /The name must be/
  const signed = /belongs to a signed provider/
  const state = async () => (await runCli(['provider', 'list', '--json'], { env })).stdout
  await refuseCommands(t, { env, state }, [
    [['provider', 'add', 'ready'], 1, /There is a provider "generic:ready" already/],
    [['provider', 'add', 'generic:ready'], 1, /There is a provider "generic:ready" already/],
    [['provider', 'add', 'UPPER'], 1, name],
    [['provider', 'add', 'a b'], 1, name],
    [['provider', 'add', '_first'], 1, name],
    [['provider', 'add', 'a'.repeat(65)], 1, name],
    [['provider', 'add', 'queue:x'], 1, name],
    [['provider', 'add', 'code_host'], 1, signed],
    [['provider', 'add', 'payments', '--open'], 1, signed],
    [['provider', 'add', 'generic:chat'], 1, signed],
    [['provider', 'enable', 'nobody'], 1, /There is no provider "generic:nobody"/],
    [['provider', 'disable', 'nobody'], 1, /There is no provider "generic:nobody"/],
    [['provider', 'rotate', 'anybody'], 1, /There is no provider "generic:anybody" with a token/],
    [['provider', 'rotate', 'nobody'], 1, /There is no provider "generic:nobody" with a token/],
    [['provider', 'rotate', 'chat'], 1, /stored encrypted: set GATEHOUSE_SECRET_KEY/],
    [['provider', 'remove', 'nobody'], 1, /There is no provider "generic:nobody"/],
    [['provider', 'remove', 'chat'], 1, /There is no provider "chat"/],
  ])
}

async function lists(t: Test, way: Way): Promise<void> {
  const { code, stdout, stderr } = await provider(way, 'list', '--json')
  t.same({ code, stderr }, { code: 0, stderr: '' })
  const found: readonly Readonly<Record<string, unknown>>[] = JSON.parse(stdout)
  t.same(
    found.map(({ name }) => name),
    ['chat', 'code_host', 'payments', 'generic:anybody', 'generic:ready'],
  )
  for (const one of found) t.same(Object.keys(one).toSorted(), STATUS_FIELDS.toSorted())
  t.match(found[0], { trust_mode: 'signed', enabled: false, secret_status: 'missing' })
  const [, , , open, token] = found
  t.same(open, {
    name: 'generic:anybody',
    family: 'webhook',
    trust_mode: 'open',
    enabled: true,
    secret_status: 'none-by-design',
    path: '/webhooks/generic/anybody',
    channel: null,
  })
  t.match(token, { trust_mode: 'token', enabled: true, secret_status: 'configured' })

  const table = await provider(way, 'list')
  const [head = '', ...rows] = table.stdout.trimEnd().split('\n')
  t.same(head.split(/ +/), ['NAME', 'TRUST', 'STATE', 'SECRET', 'PATH'])
  t.same(
    rows.map((row) => row.split(/ +/)[0]),
    found.map(({ name }) => name),
  )
}

/** Runs `provider …`; a token that it prints stays out of the transcript. */
function provider({ env }: Way, ...args: readonly string[]): Promise<CliResult> {
  return runCli(['provider', ...args], { env, secretShown: args[0] !== 'list' })
}

/** The token: the last line of stdout, and here the only one. */
function tokenOf(t: Test, { stdout, stderr }: CliResult): string {
  t.match(stdout, /^[\w-]{43}\n$/, 'the token stands alone on stdout')
  const token = keepSecret('generic-token', stdout.trim())
  t.notOk(stderr.includes(token), 'and nowhere else')
  return token
}

async function expectStored(t: Test, way: Way, name: string, wanted: object): Promise<void> {
  // An embedded database can be looked into only while no server has it.
  if (way.backend.name === 'embedded') return
  const [row] = await way.backend.query(way.env, STORED, [name])
  t.match(row, wanted, `${name} is stored`)
}

/**
 * Beside a server a change counts at its receiver: at once when the server itself made it, and on
 * PostgreSQL as soon as it has heard of it.
 */
async function expectDelivery(
  t: Test,
  { base, backend }: Way,
  name: string,
  token: string | undefined,
  status: number,
): Promise<void> {
  const authorization = token === undefined ? {} : { Authorization: `Bearer ${token}` }
  const post = async (): Promise<number> => {
    const headers = { 'Content-Type': 'application/json', ...authorization }
    const url = `${base}/webhooks/generic/${name}`
    return (await request(url, { method: 'POST', headers, body: '{}' })).status
  }
  if (backend.name === 'postgres') {
    await until(async () => (await post()) === status, `${name} to answer ${status}`)
    return
  }
  t.equal(await post(), status, `${name} answers ${status} at once`)
}

async function lifeOfEndpoint(t: Test, { env, backend, base }: Way): Promise<void> {
  const made = await endpoint(env, 'add', 'agent')
  const token = endpointToken(t, made)
  // Which port it is that stands as 0 in the configuration, the server alone knows.
  if (backend.name === 'embedded') t.match(made.stderr, `"url": "${base}/mcp/agent"`)
  const status = async (): Promise<number> =>
    (await modern({ url: `${base}/mcp/agent`, token }, 'tools/list')).status
  await until(async () => (await status()) === 200, 'the server to know the token')
  t.match(await endpoint(env, 'list'), { code: 0, stdout: /agent/ })
  t.match(await endpoint(env, 'revoke', 'agent'), { code: 0 })
  // The server that ran the command has forgotten the token already; any other is told.
  if (backend.name === 'embedded') t.equal(await status(), 401)
  else await until(async () => (await status()) === 401, 'the server to forget the token')
}

await onPostgres(t, 'endpoint commands without a server', async (t: Test, backend) => {
  const env = { ...(await backend.env(t)), HOOKS_BASE_URL: 'https://hooks.example.com' }
  t.match(await endpoint(env, 'list', '--json'), { code: 0, stdout: '[]\n' })

  const added = await endpoint(env, 'add', 'desk', '--allow', 'replay')
  endpointToken(t, added)
  t.match(added.stderr, /desk created/)
  t.same(JSON.parse(added.stderr.slice(added.stderr.indexOf('{'))), {
    mcpServers: {
      'gatehouse-desk': {
        type: 'http',
        url: 'https://hooks.example.com/mcp/desk',
        headers: { Authorization: 'Bearer TOKEN' },
      },
    },
  })
  const listening = { ...env, HOOKS_BASE_URL: '', HOOKS_ADDR: '[::1]:8080' }
  const agent = await endpoint(listening, 'add', 'agent')
  endpointToken(t, agent)
  t.match(agent.stderr, '"url": "http://[::1]:8080/mcp/agent"')

  const listed = await endpoint(env, 'list', '--json')
  t.match(JSON.parse(listed.stdout), [
    { name: 'agent', may_replay: false, created_at: /Z$/, last_used_at: null },
    { name: 'desk', may_replay: true, created_at: /Z$/, last_used_at: null },
  ])
  const table = (await endpoint(env, 'list')).stdout
  t.match(table, /^NAME +MAY +CREATED +LAST USED\nagent +read +.*never\ndesk +read,replay +/)

  t.match(await endpoint(env, 'revoke', 'desk'), {
    code: 0,
    stdout: '',
    stderr: /desk is revoked/,
  })
  const state = async () => (await endpoint(env, 'list', '--json')).stdout
  await refuseCommands(t, { env, state }, [
    [['endpoint', 'add', 'agent'], 1, /"agent" already/],
    [['endpoint', 'add', 'Agent'], 1, /1 to 64 of a-z/],
    [['endpoint', 'revoke', 'desk'], 1, /no endpoint "desk"/],
  ])

  for (const HOOKS_ADDR of ['unix:/tmp/none.sock', 'fd:hooks', '127.0.0.1:0']) {
    const hidden = await endpoint({ ...listening, HOOKS_ADDR }, 'add', 'desk')
    endpointToken(t, hidden)
    t.match(hidden.stderr, '"url": "http://HOST/mcp/desk"', HOOKS_ADDR)
    t.match(hidden.stderr, /\nHOST stands for .*HOOKS_BASE_URL/, HOOKS_ADDR)
    t.match(await endpoint(env, 'revoke', 'desk'), { code: 0 })
  }
})

function endpoint(env: Env, ...args: readonly string[]): Promise<CliResult> {
  return runCli(['endpoint', ...args], { env, secretShown: args[0] === 'add' })
}

/** The token on the last line of stdout, alone. */
function endpointToken(t: Test, { code, stdout, stderr }: CliResult): string {
  t.equal(code, 0)
  t.match(stdout, /^[\w-]{43}\n$/, 'the token alone')
  const token = keepSecret('endpoint-token', stdout.trim())
  t.notMatch(stderr, token, 'nothing that is said about it shows it')
  return token
}

function hash(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}
