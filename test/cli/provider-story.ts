import { createHash } from 'node:crypto'
import type { Test } from 'tap'
import type { Backend } from '../helpers/backends.ts'
import { runCli } from '../helpers/cli.ts'
import type { CliResult } from '../helpers/cli.ts'
import { request } from '../helpers/http.ts'
import type { Env } from '../helpers/program.ts'
import { keepSecret } from '../helpers/secrets.ts'
import { until } from '../helpers/until.ts'

/** How the commands reach the database; what they say and do is the same each way. */
export type Way = {
  readonly env: Env
  readonly backend: Backend
  readonly base: string | undefined
}

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

/** Runs every `provider` command and looks at what it printed, stored and changed. */
export async function providerStory(t: Test, way: Way): Promise<void> {
  await t.test('add, enable, rotate, disable, remove', (t) => lifeOfToken(t, way))
  await t.test('--open --enable', (t) => lifeOfOpen(t, way))
  await t.test('what is refused', (t) => refusals(t, way))
  await t.test('list', (t) => lists(t, way))
}

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

  t.match(await provider(way, 'disable', 'ci'), { code: 0, stdout: '', stderr: 'ci is disabled\n' })
  await expectDelivery(t, way, 'ci', second, 403)

  const removed = await provider(way, 'remove', 'ci')
  t.match(removed, { code: 0, stdout: '', stderr: /ci is removed; its events stay/ })
  await expectDelivery(t, way, 'ci', second, 404)
  if (way.base !== undefined) {
    const log = await request(`${way.base}/log?provider=generic:ci`)
    const kept = [...log.text.matchAll(/data-id="\d+"/g)].length
    t.ok(kept >= 2, `its ${kept} events stay`)
  }
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

const REFUSALS: readonly (readonly [readonly string[], RegExp])[] = [
  [['add', 'ready'], /There is a provider "generic:ready" already/],
  [['add', 'UPPER'], /The name must be/],
  [['add', 'code_host'], /belongs to a signed provider/],
  [['rotate', 'anybody'], /There is no provider "generic:anybody" with a token/],
  [['remove', 'chat'], /There is no provider "chat"/],
  [['add', 'generic:ready'], /There is a provider "generic:ready" already/],
  [['add', 'a b'], /The name must be/],
  [['add', '_first'], /The name must be/],
  [['add', 'a'.repeat(65)], /The name must be/],
  [['add', 'queue:x'], /The name must be/],
  [['add', 'payments', '--open'], /belongs to a signed provider/],
  [['add', 'generic:chat'], /belongs to a signed provider/],
  [['enable', 'nobody'], /There is no provider "generic:nobody"/],
  [['disable', 'nobody'], /There is no provider "generic:nobody"/],
  [['rotate', 'nobody'], /There is no provider "generic:nobody" with a token/],
  [['remove', 'nobody'], /There is no provider "generic:nobody"/],
  [['rotate', 'chat'], /There is no provider "chat" with a token/],
]

async function refusals(t: Test, way: Way): Promise<void> {
  // A process that opens an embedded database takes a second; the rules are the same ones.
  const cases = way.base === undefined ? REFUSALS.slice(0, 5) : REFUSALS
  for (const [args, line] of cases) {
    const { code, stdout, stderr } = await provider(way, ...args)
    const found = { code, stdout, lines: stderr.split('\n').length }
    t.same(found, { code: 1, stdout: '', lines: 2 }, args.join(' '))
    t.match(stderr, new RegExp(`^gatehouse: .*${line.source}`), args.join(' '))
  }
  const usage = await provider(way, 'add', 'x', '--quick')
  t.match(usage, { code: 2, stdout: '', stderr: /^gatehouse: Unknown option '--quick'/ })
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
  if (way.base !== undefined && way.backend.name === 'embedded') return
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
  if (base === undefined) return
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

function hash(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}
