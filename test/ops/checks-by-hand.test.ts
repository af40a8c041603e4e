import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { t } from 'tap'
import type { Test } from 'tap'
import { createSecretBox } from '../../kernel/secret-box.ts'
import { openHeaders, sealHeaders } from '../../services/ops/checks/headers.ts'
import { auditOf } from '../helpers/audit.ts'
import { backends } from '../helpers/backends.ts'
import { postForm } from '../helpers/hooks.ts'
import { leadsTo, request } from '../helpers/http.ts'
import { NAVIGATION } from '../helpers/links.ts'
import { eventsOf, inventoryFile, startOps } from '../helpers/ops.ts'
import { refuseAll, type Refusal } from '../helpers/refusals.ts'
import { startReceiver } from '../helpers/replays.ts'
import { secret } from '../helpers/secrets.ts'
import { until } from '../helpers/until.ts'

type Check = {
  readonly id: number
  readonly service: string
  readonly name: string
  readonly type: string
  readonly state: string
  readonly last_message: string
  readonly every_s: number
  readonly muted_until: string | null
  readonly source?: string
  readonly definition?: object | null
}
type Mute = { readonly id: number }

const [, postgres] = backends
const HTML = { accept: 'text/html' }
const MEMBERS = [
  ...['id', 'service', 'name', 'type', 'state', 'since', 'last_message', 'every_s'],
  'muted_until',
]

const FRONT = { name: 'front', type: 'tcp', host: '127.0.0.1', port: 1 }
const file = await inventoryFile(t, { services: [{ name: 'shop', checks: [FRONT] }] })
const ops = await startOps(t, postgres, { OPS_INVENTORY: file })
const { api, base, env } = ops
const open = createServer((socket) => socket.destroy())
await new Promise<void>((resolve) => open.listen(0, '127.0.0.1', resolve))
t.teardown(() => void open.close())
const { port } = open.address() as AddressInfo

const list = async (): Promise<readonly Check[]> =>
  (await api<{ checks: readonly Check[] }>('GET', '/checks')).json.checks
const named = async (name: string): Promise<Check | undefined> =>
  (await list()).find((check) => `${check.service}/${check.name}` === name)
const front = await until(() => named('shop/front'), 'the check of the file')
const page = async (path: string): Promise<string> =>
  (await request(base + path, { headers: HTML })).text

await t.test('one that is removed while it runs leaves nothing behind', async (t: Test) => {
  const held = Promise.withResolvers<void>()
  const { url, received } = await startReceiver(t, async (_, response) => {
    await held.promise
    response.writeHead(503).end()
  })
  const gone = { type: 'http', name: 'gone', url, retries: 0, timeout_s: 60 }
  const added = await api<Check>('POST', '/checks', { service: 'store', check: gone })
  await until(() => received.length === 1, 'its run')
  t.equal((await api('DELETE', `/checks/${added.json.id}`)).status, 204)
  held.resolve()
  // What is found later is stored later.
  const next = { type: 'tcp', name: 'next', host: '127.0.0.1', port }
  const other = await api<Check>('POST', '/checks', { service: 'store', check: next })
  await until(async () => (await named('store/next'))?.state === 'ok', 'the next check')
  const told = (await eventsOf(ops)).filter(({ message }) => message.startsWith('gone'))
  t.same(told, [])
  t.equal((await api('DELETE', `/checks/${other.json.id}`)).status, 204)
})

await t.test(
  'one that is changed while it runs is judged by its new definition',
  async (t: Test) => {
    const held = Promise.withResolvers<void>()
    const { url, received } = await startReceiver(t, async ({ path }, response) => {
      if (path === '/old') await held.promise
      response.writeHead(path === '/old' ? 503 : 200).end()
    })
    const check = { type: 'http', name: 'moved', retries: 0, timeout_s: 60 }
    const old = { service: 'store', check: { ...check, url: `${url}/old` } }
    const { json } = await api<Check>('POST', '/checks', old)
    await until(() => received.length === 1, 'the run of the old definition')
    const changed = { check: { ...check, url: `${url}/new` } }
    t.equal((await api('PUT', `/checks/${json.id}`, changed)).status, 200)
    await until(async () => (await named('store/moved'))?.state === 'ok', 'the new definition')
    held.resolve()
    // What is found later is stored later.
    const next = { type: 'tcp', name: 'after', host: '127.0.0.1', port }
    const other = await api<Check>('POST', '/checks', { service: 'store', check: next })
    await until(async () => (await named('store/after'))?.state === 'ok', 'the next check')
    t.match(await named('store/moved'), { state: 'ok', last_message: 'answered 200' })
    for (const { id } of [json, other.json]) await api('DELETE', `/checks/${id}`)
  },
)

await t.test('the API: a check is added, changed, run and removed', async (t: Test) => {
  t.same(Object.keys(front).toSorted(), MEMBERS.toSorted())
  const check = { type: 'tcp', host: '127.0.0.1', port, every: '10m' }
  const added = await api<Check>('POST', '/checks', { service: 'store', check })
  t.equal(added.status, 201)
  const name = `tcp 127.0.0.1:${port}`
  t.match(added.json, { name, source: 'hand', definition: { ...check, name } })
  const path = `/checks/${added.json.id}`
  const ran = await api<Check>('POST', `${path}/run`)
  t.match([ran.status, ran.json], [200, { state: 'ok', last_message: 'takes connections' }])
  const changed = await api<Check>('PUT', path, { check: { ...check, port: 1, retries: 9 } })
  t.match([changed.status, changed.json.name], [200, name], 'it keeps its name')
  t.match((await api<Check>('POST', `${path}/run`)).json, { state: 'fail' }, 'it counts at once')
  t.match((await api<Check>('GET', path)).json, { definition: { port: 1, retries: 9 } })
  t.match((await api<Check>('GET', `/checks/${front.id}`)).json, {
    source: 'file',
    definition: null,
  })
  t.equal((await api('DELETE', path)).status, 204)
  t.equal((await list()).length, 1)
})

await t.test('the API: what is refused', async (t: Test) => {
  const { json: held } = await api<Check>('POST', '/checks', {
    service: 'store',
    check: { type: 'memory', name: 'held' },
  })
  const add = 'POST /api/v1/checks'
  const of = (check: object, more = {}) => ({ call: add, body: { service: 's', check, ...more } })
  const put = (id: number, check: object) => ({
    call: `PUT /api/v1/checks/${id}`,
    body: { check },
  })
  const mute = (body: object) => ({ call: 'POST /api/v1/mutes', body })
  const memory = { type: 'memory' }
  const reason = 'r'
  const ofFile = 'shop/front stands in the inventory file: change it there'
  const rows: readonly Refusal[] = [
    [of({ type: 'none' }), 400, undefined, /^type must be one of http, tcp, /],
    [of({}), 400, undefined, /^type must be one of/],
    [of({ ...memory, colour: 1 }), 400, undefined, 'colour is not known'],
    [of({ ...memory, every: '9s' }), 400, undefined, 'every must be 10s to 24h'],
    [of({ type: 'tcp', host: 'h' }), 400, undefined, 'port is required'],
    [of({ type: 'command', argv: ['true'] }), 400, undefined, /^type must not be command/],
    [of({ ...memory, name: 'a\0b\ud800' }), 400, undefined, /^name must have no NUL/],
    [of({ type: 'disk', path: `/${'x'.repeat(16_384)}` }), 400, undefined, /16384 characters/],
    [of(memory, { colour: 1 }), 400, undefined, /^colour is not known/],
    [{ call: add, body: { check: memory } }, 400, undefined, /^service is required/],
    [
      { call: add, body: { service: 's', check: [] } },
      400,
      undefined,
      /^check must be a JSON obj/,
    ],
    [{ call: add, body: { service: 'a\nb', check: memory } }, 400, undefined, /^service must be/],
    [
      { call: add, body: { service: 'shop', check: { ...memory, name: 'front' } } },
      409,
      undefined,
      'there is a check shop/front already: choose another name',
    ],
    [
      { call: add, body: { service: 'store', check: { ...memory, name: 'held' } } },
      409,
      undefined,
      /^there is a check store\/held already/,
    ],
    [put(front.id, memory), 409, undefined, ofFile],
    [put(held.id, { ...memory, name: 'x' }), 400, undefined, /^name must stay/],
    [put(held.id, { ...memory, every: 1 }), 400, undefined, 'every must be 10s to 24h'],
    [put(999, memory), 404, undefined, 'check not found'],
    [`DELETE /api/v1/checks/${front.id}`, 409, undefined, ofFile],
    ['DELETE /api/v1/checks/999', 404, undefined, 'check not found'],
    ['DELETE /api/v1/checks/x', 400, undefined, 'the check id must be an integer'],
    ['GET /api/v1/checks/999', 404, undefined, 'check not found'],
    ['POST /api/v1/checks/999/run', 404, undefined, 'check not found'],
    [mute({ service: 'none', for: '1h', reason }), 404, undefined, /no service "none"/],
    [mute({ service: 'shop', check: 'none', for: '1h', reason }), 404, undefined, /"shop\/none"/],
    [mute({ check: 'front', for: '1h', reason }), 400, undefined, /^service must be given/],
    [mute({ ends_at: '2020-01-01T00:00:00Z', reason }), 400, undefined, /^ends_at must end in /],
    [mute({ ends_at: 'noon', reason }), 400, undefined, /^ends_at must be a time/],
    [mute({ for: '999999999d', reason }), 400, undefined, 'for must end within a year'],
    [mute({ for: '1h' }), 400, undefined, /^reason is required/],
    [mute({ for: '1h', reason, colour: 1 }), 400, undefined, /^colour is not known/],
    ['DELETE /api/v1/mutes/999', 404, undefined, 'mute not found'],
  ]
  const state = async (): Promise<unknown> => [
    await postgres.query(env, 'select service, name, definition from ops.checks order by id'),
    await postgres.query(env, 'select * from ops.mutes'),
  ]
  await refuseAll(t, { service: 'ops', base, state }, rows)
  t.equal((await api('DELETE', `/checks/${held.id}`)).status, 204)
})

await t.test('the file wins, and what it leaves is there again', async (t: Test) => {
  const check = { type: 'tcp', name: 'both', host: '127.0.0.1', port }
  const { json: made } = await api<Check>('POST', '/checks', { service: 'shop', check })
  const sourceOf = async () => (await api<Check>('GET', `/checks/${made.id}`)).json.source
  const both = { ...check, port: 1 }
  writeFileSync(file, JSON.stringify({ services: [{ name: 'shop', checks: [FRONT, both] }] }))
  await until(async () => (await sourceOf()) === 'file' || undefined, 'that the file counts')
  t.match((await api('DELETE', `/checks/${made.id}`)).status, 409)
  writeFileSync(file, JSON.stringify({ services: [{ name: 'shop', checks: [FRONT] }] }))
  await until(async () => (await sourceOf()) === 'hand' || undefined, 'that it counts again')
  t.equal((await api('DELETE', `/checks/${made.id}`)).status, 204)
})

await t.test('a try runs what the form describes, and stores nothing', async (t: Test) => {
  const before = await list()
  const changes = await auditOf(env)
  const attempt = (fields: Readonly<Record<string, string>>) =>
    postForm(base, '/checks/try', fields, NAVIGATION)
  const fields = { type: 'tcp', host: '127.0.0.1', port: String(port) }
  const found = await attempt(fields)
  t.match([found.status, found.text], [200, /id="tried"[\s\S]*takes connections[\s\S]*Not stored/])
  t.match(found.text, /value="127\.0\.0\.1"/, 'with what was typed')
  const late = await attempt({ ...fields, port: '1', timeout_s: '0.5' })
  t.match(late.text, /id="tried"[\s\S]*fail[\s\S]*connection refused/)
  for (const [more, text] of [
    [{ port: '0' }, 'Port must be &gt;= 1'],
    [{ timeout_s: '61' }, '&lt;= 60'],
    [{ every: '1s' }, 'Every must be 10s to 24h'],
    [{ type: 'command' }, 'Type must be one of'],
  ] as const) {
    const refused = await attempt({ ...fields, ...more })
    t.match([refused.status, refused.text], [400, text])
    t.notMatch(refused.text, /id="tried"/)
  }
  const headers = 'X-Token: abc'
  const sealed = await attempt({ type: 'http', url: `http://127.0.0.1:${port}/`, headers })
  t.match([sealed.status, sealed.text], [400, /set GATEHOUSE_SECRET_KEY/], 'as it would be added')
  const site = { ...NAVIGATION, 'sec-fetch-site': 'cross-site', origin: 'http://evil.example' }
  t.equal((await postForm(base, '/checks/try', fields, site)).status, 403)
  t.same([await list(), await auditOf(env)], [before, changes])
})

await t.test('tries are bounded, and take no place of what is due', async (t: Test) => {
  const held = new Set<Socket>()
  const silent = createServer((socket) => void held.add(socket))
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
  t.teardown(() => void silent.close())
  const address = silent.address() as AddressInfo
  const url = `http://127.0.0.1:${address.port}/`
  const attempt = () => postForm(base, '/checks/try', { type: 'http', url }, NAVIGATION)
  const tried = [attempt(), attempt(), attempt(), attempt()]
  await until(() => held.size === 4, 'four tries')
  const fifth = await attempt()
  t.match([fifth.status, fifth.text], [503, /4 checks are tried already/])
  t.equal((await api('POST', `/checks/${front.id}/run`)).status, 200)
  for (const socket of held) socket.destroy()
  for (const one of await Promise.all(tried)) t.equal(one.status, 200)
})

await t.test('a check is muted and unmuted by its own forms', async (t: Test) => {
  const act = (verb: string, fields = {}) =>
    postForm(base, `/checks/${front.id}/${verb}`, fields, NAVIGATION)
  const bad = await act('mute', { for: 'soon', reason: 'it moves' })
  t.match([bad.status, bad.text], [400, /id="check-page"[\s\S]*For must be[\s\S]*it moves/])
  t.equal((await act('mute', { for: '1h', row: 'wide', reason: 'r' })).status, 400)
  const muted = await act('mute', { for: '1h', row: 'short', reason: 'r' })
  t.match([muted.status, leadsTo(muted)], [303, '/checks'])
  const end = (await named('shop/front'))?.muted_until ?? ''
  t.ok(Date.parse(end) > Date.now())
  t.match(await page('/checks'), /Unmute/)
  const unmuted = await act('unmute', { row: 'days' })
  t.match(unmuted.headers.location, /^\/checks\?service=shop&done=unmuted/)
  t.equal((await named('shop/front'))?.muted_until, null)
  t.equal((await act('unmute')).status, 404)
  t.match(leadsTo(await act('run', { row: 'short' })), '/checks')
  await api('POST', '/mutes', { service: 'shop', for: '1h', reason: 'all of it' })
  t.equal((await act('unmute')).status, 404, 'what mutes the service ends elsewhere')
  const { json } = await api<{ mutes: readonly Mute[] }>('GET', '/mutes')
  for (const { id } of json.mutes) t.equal((await api('DELETE', `/mutes/${id}`)).status, 204)
})

await t.test('pages, without script', async (t: Test) => {
  const post = (path: string, fields = {}) => postForm(base, path, fields, NAVIGATION)
  t.match(await page('/checks'), /href="\/checks" aria-current="page"/)
  t.match(await page('/checks/new'), /<option value="tcp">[\s\S]*Choose type/)
  t.notMatch(await page('/checks/new'), /value="command"/)
  t.match(await page('/checks/new?type=tcp'), /name="host"[\s\S]*name="port"/)
  const fields = { type: 'tcp', service: 'store', name: 'web', host: '127.0.0.1', every: '10m' }
  const refused = await post('/checks', { ...fields, port: '0' })
  t.equal(refused.status, 400)
  t.match(refused.text, /value="127\.0\.0\.1"[\s\S]*Port must be &gt;= 1/, 'with what was typed')
  const added = await post('/checks', { ...fields, port: String(port) })
  const path = leadsTo(added)
  t.match([added.status, path], [303, /^\/checks\/\d+$/])
  t.match(await page(path), /Run now[\s\S]*made by hand[\s\S]*value="10m"/)
  t.equal((await post(`${path}/run`)).status, 303)
  t.match(await page(path), /takes connections/)
  t.equal((await post(path, { ...fields, port: '1', every: '5m' })).status, 303)
  t.match((await named('store/web'))?.every_s, 300)
  t.match(await page('/checks'), new RegExp(`href="${path}"[\\s\\S]*made by hand`))
  const ofFile = await page(`/checks/${front.id}`)
  t.match(ofFile, /the inventory file/)
  t.notMatch(ofFile, /Edit…|Remove…/)

  const scope = { service: 'store', check: 'web' }
  const bad = await post('/mutes', { ...scope, for: '1h', reason: '' })
  t.match([bad.status, bad.text], [400, /Reason is required/])
  const muted = await post('/mutes', { ...scope, for: '1h', starts_at: '', reason: 'it moves' })
  t.match([muted.status, leadsTo(muted)], [303, '/mutes'])
  await post('/mutes', { for: '1h', starts_at: '2099-01-01T00:00:00Z', reason: 'all of it' })
  for (const shown of ['/checks', path, '/mutes']) {
    t.match(await page(shown), /it moves[\s\S]*operator/, shown)
  }
  t.match(await page('/mutes'), /everything[\s\S]*to come[\s\S]*all of it[\s\S]*Cancel/)
  const { json } = await api<{ mutes: readonly Mute[] }>('GET', '/mutes')
  const [first, ...others] = json.mutes
  t.equal((await api('DELETE', `/mutes/${first?.id}`)).status, 204)
  for (const { id } of others) t.equal((await post(`/mutes/${id}/delete`)).status, 303)
  t.match(await page('/mutes'), /Nothing is muted/)
  t.equal((await named('store/web'))?.muted_until, null)

  t.match(leadsTo(await post(`${path}/delete`)), '/checks')
  t.equal(await named('store/web'), undefined)
})

t.test('headers are stored encrypted, bound to their check', async (t: Test) => {
  const token = secret('check-header')
  const sealer = createSecretBox(randomBytes(32), randomBytes)
  const box = () => sealer
  const place = { service: 'shop', name: 'web' }
  const sealed = sealHeaders(box, place, { 'X-Token': token }, {})
  t.notMatch(JSON.stringify(sealed), token)
  t.same(openHeaders(box, place, sealed), { headers: { 'X-Token': token } })
  t.same(sealHeaders(box, place, { 'X-Token': 'configured' }, sealed), sealed, 'it stays')
  const elsewhere = openHeaders(box, { ...place, name: 'other' }, sealed)
  t.same(elsewhere, { obstacle: "its headers can't be read: damaged" })
  const without = openHeaders(() => undefined, place, sealed)
  t.match(without, { obstacle: /GATEHOUSE_SECRET_KEY is not set/ })
  const refuse = (headers: object, text: RegExp, by: typeof box | (() => undefined) = box) =>
    t.throws(() => sealHeaders(by, place, headers, {}), { status: 400, message: text })
  refuse({ 'X-Token': token }, /set GATEHOUSE_SECRET_KEY/, () => undefined)
  refuse({ 'X-Token': 'configured' }, /no value yet for X-Token/)
  refuse({ 'X Token': 'a' }, /names that HTTP knows/)
  refuse({ 'X-Token': 'a\nb' }, /printable ASCII/)
})
