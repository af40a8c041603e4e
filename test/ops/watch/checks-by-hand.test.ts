import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { t } from 'tap'
import { createSecretBox } from '../../../kernel/secret-box.ts'
import { openHeaders, sealHeaders } from '../../../services/ops/watch/checks/headers.ts'
import { occurrenceAt } from '../../../services/ops/watch/mutes/windows.ts'
import { auditOf } from '../../helpers/audit.ts'
import { postgres } from '../../helpers/backends.ts'
import { postForm } from '../../helpers/hooks.ts'
import { leadsTo, request, wordsOf } from '../../helpers/http.ts'
import { NAVIGATION } from '../../helpers/links.ts'
import { eventsOf, inventoryFile, listOf, startOps } from '../../helpers/ops.ts'
import { expectStatus, refuseAll, type Refusal, type RefusedCall } from '../../helpers/refusals.ts'
import { startReceiver } from '../../helpers/replays.ts'
import { secret } from '../../helpers/secrets.ts'
import { until } from '../../helpers/until.ts'
import { listen } from '../../helpers/listen.ts'

type Check = Readonly<
  Record<'id' | 'every_s', number> & Record<'state' | 'source' | 'beat_url', string>
> & { service: string; name: string; muted_until: string | null }
type History = {
  uptime: Readonly<Record<string, number | null>>
  changes: readonly { id: number }[]
  older: number | null
}

const FRONT = { name: 'front', type: 'tcp', host: '127.0.0.1', port: 1 }
const file = await inventoryFile(t, { services: [{ name: 'shop', checks: [FRONT] }] })
const GATEHOUSE_SECRET_KEY = randomBytes(32).toString('base64')
const ops = await startOps(t, postgres, { OPS_INVENTORY: file, GATEHOUSE_SECRET_KEY })
const { api, base, env, page, query } = ops
const port = await listen(
  t,
  createServer((socket) => socket.destroy()),
)

const list = () => listOf<Check>(ops, 'checks')
const named = async (name: string): Promise<Check | undefined> =>
  (await list()).find((check) => `${check.service}/${check.name}` === name)
/** Waits until a check has been looked at, and was found like this. */
const found = (name: string, state: string) =>
  until(async () => {
    const check = await named(name)
    return check?.state === state && check
  }, `${name} to be ${state}`)
const front = await found('shop/front', 'fail')
const add = (service: string, check: object) => api<Check>('POST', '/checks', { service, check })
const textOf = async (path: string) => wordsOf(await page(path))

await t.test('a run counts only for the definition that it had', async (t) => {
  const held = Promise.withResolvers<void>()
  const { url, received } = await startReceiver(t, async ({ path }, response) => {
    if (path === '/old') await held.promise
    response.writeHead(path === '/old' ? 503 : 200).end()
  })
  const check = { type: 'http', retries: 0, timeout_s: 60, url: `${url}/old` }
  const gone = await add('store', { ...check, name: 'gone' })
  await until(() => received.length === 1, 'its run')
  const moved = await add('store', { ...check, name: 'moved' })
  await until(() => received.length === 2, 'the run of the old definition')
  await expectStatus(204, api('DELETE', `/checks/${gone.json.id}`))
  const changed = { check: { ...check, name: 'moved', url: `${url}/new` } }
  await expectStatus(200, api('PUT', `/checks/${moved.json.id}`, changed))
  await found('store/moved', 'ok')
  held.resolve()
  // What is found later is stored later.
  await add('store', { ...FRONT, name: 'next', port })
  await found('store/next', 'ok')
  const told = (await eventsOf(ops)).filter(({ message }) => message.startsWith('gone'))
  t.same(told, [])
  t.match(await named('store/moved'), { state: 'ok', last_message: 'answered 200' })
})

await t.test('the API: a check is added, changed, run and removed', async (t) => {
  const check = { type: 'tcp', host: '127.0.0.1', port, every: '10m' }
  const added = await expectStatus(201, add('plain', check))
  const name = `tcp 127.0.0.1:${port}`
  t.match(added.json, { name, source: 'hand', check: { ...check, name } })
  const path = `/checks/${added.json.id}`
  const run = () => api('POST', `${path}/run`)
  const well = { state: 'ok', last_message: 'takes connections' }
  t.match(await run(), { status: 200, json: well })
  const changed = await api('PUT', path, { check: { ...check, port: 1, retries: 9 } })
  t.match(changed, { status: 200, json: { name } }, 'it keeps its name')
  t.match(await run(), { json: { state: 'fail' } }, 'it counts at once')
  t.match(await api('GET', path), { json: { check: { port: 1, retries: 9 } } })
  const ofFile = { source: 'file', check: null }
  t.match(await api('GET', `/checks/${front.id}`), { json: ofFile })
  await expectStatus(204, api('DELETE', path))
  t.notOk(await named(`plain/${name}`))
})

const disk = { type: 'disk', path: '/' }
const http = { type: 'http', url: 'https://shop.test/' }
const plainHttp = { type: 'http', url: 'http://shop.test/' }
const tcp = { type: 'tcp', host: 'db', port: 5432 }
const dns = { type: 'dns', host: 'shop.test' }
const program = { type: 'process', program: 'node' }
const age = { type: 'file_age', path: '/backup' }
const memory = { type: 'memory' }

const EVERY = 'every must be 10s to 24h'
const STATUS = 'status must be such as 200, "200-299", or a list of these'
const MEMBERS = 'members.0 must be path=value, such as db.state=up'
const HEADERS = 'headers must be names of HTTP headers with values of one line'
const NO_TLS = 'must not be there without https in the url'
const HEAD = 'must not be there with the method HEAD, which has no body'
const SERVER = 'server must be an IP address with or without a port, such as 192.0.2.53:5353'
const HOST = 'host must be a name or an address'
const NOT_TOLD = 'investigate must not be there without the level critical'
const ALONE = 'exists must not be false with max_age_s or min_bytes'
const TYPES =
  'type must be one of http, tcp, tls, dns, ping, unit, process, disk, memory, load, file_age, command, container, heartbeat'
const TEXT = 'a text of 1 to 200 characters without control characters'
const HOURS =
  'every must be days and hours such as sat,sun 02:00-04:00, mon-fri 22:00-06:00 or daily 03:00-03:30'

/** Wrong checks, and what is said of them. */
const WRONG = [
  [{}, TYPES],
  [{ type: 'none' }, TYPES],
  [
    { type: 'command', argv: ['true'] },
    'type must not be command: a check that runs a program stands in the inventory file',
  ],
  [{ ...memory, colour: 1 }, 'colour is not known'],
  [{ ...memory, name: 'a\0b\ud800' }, 'name must have no NUL and no half characters'],
  [
    { type: 'disk', path: `/${'x'.repeat(16_384)}` },
    'the check must have 16384 characters at most',
  ],
  [{ type: 'tcp', host: 'h' }, 'port is required'],
  [{ ...disk, every: 9.9 }, EVERY],
  [{ ...disk, every: '25h' }, EVERY],
  [{ ...disk, retries: 11 }, 'retries must be <= 10'],
  [{ ...disk, timeout_s: 61 }, 'timeout_s must be <= 60'],
  [{ ...http, url: 'ftp://x/' }, 'url must be an address that begins with http:// or https://'],
  [
    { ...http, method: 'CONNECT' },
    'method must be one of GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS',
  ],
  [{ ...http, status: '299-200' }, STATUS],
  [{ ...http, status: [200, { from: 300 }] }, STATUS],
  [{ ...http, members: ['a..b=c'] }, MEMBERS],
  [{ ...http, headers: { 'x y': 'z' } }, HEADERS],
  [{ ...http, headers: { authorization: `Bearer ${secret('password')}\r\nx: y` } }, HEADERS],
  [{ ...http, body: '{}' }, 'body must not be there without the method POST, PUT, PATCH, DELETE'],
  [{ ...http, method: 'HEAD', contains: 'x' }, `contains ${HEAD}`],
  [{ ...http, max_ms: 0 }, 'max_ms must be >= 1'],
  [{ ...plainHttp, days: 3 }, `days ${NO_TLS}`],
  [{ ...http, ca: '/ca.pem', insecure: true }, 'ca must not be there with insecure'],
  [{ ...http, ca: 'ca.pem' }, 'ca must be a path that begins with /'],
  [{ ...tcp, host: '-oProxyCommand' }, HOST],
  [{ ...tcp, send: 'PING' }, 'contains must be there with send'],
  [{ ...dns, record: 'SRV' }, 'record must be one of A, AAAA, CNAME, NS, MX, TXT'],
  [{ ...dns, server: 'ns.shop.test' }, SERVER],
  [{ type: 'ping', host: '-f' }, HOST],
  [{ ...program, min: 3, max: 2 }, 'max must be 3 or more, as min is'],
  [{ type: 'process', min: 1 }, 'the check must have match or program'],
  [age, 'the check must have max_age_s or exists'],
  [{ ...age, exists: false, max_age_s: 60 }, ALONE],
  [
    { type: 'container', container: '../json' },
    'container must be the name or the id of a container',
  ],
  [{ type: 'container', socket: 'docker.sock' }, 'socket must be a path that begins with /'],
  [{ type: 'container', log_lines: 21 }, 'log_lines must be <= 20'],
  [{ ...tcp, investigate: 4 }, 'investigate must be one of true, false, 1, 2, 3'],
  [{ ...tcp, investigate: true, level: 'warning' }, NOT_TOLD],
] as const

await t.test('the API: what is refused', async (t) => {
  const { json: held } = await add('store', { ...memory, name: 'held' })
  const call = 'POST /api/v1/checks'
  const put = (id: number, check: object) => {
    return { call: `PUT /api/v1/checks/${id}`, body: { check } }
  }
  const post = (service: unknown, check: unknown) => ({ call, body: { service, check } })
  const mute = (body: object) => {
    return { call: 'POST /api/v1/mutes', body: { reason: 'r', ...body } }
  }
  const ofFile = 'shop/front stands in the inventory file: change it there'
  const none = 'check not found'
  const daily = { service: 'shop', every: 'daily 00:00-24:00' }
  const rows: readonly (readonly [RefusedCall, number, string])[] = [
    ...WRONG.map(([check, text]) => [post('s', check), 400, text] as const),
    [post(undefined, memory), 400, `service is required and must be ${TEXT}`],
    [post('s', []), 400, 'check must be a JSON object with a type'],
    [post('a\nb', memory), 400, `service must be ${TEXT}`],
    ...(['shop/front', 'store/held'] as const).map((taken) => {
      const [service, name] = taken.split('/')
      const text = `there is a check ${taken} already: choose another name`
      return [post(service, { ...memory, name }), 409, text] as const
    }),
    [put(front.id, memory), 409, ofFile],
    [
      put(held.id, { ...memory, name: 'x' }),
      400,
      'name must stay: remove the check and add another one',
    ],
    [put(held.id, { ...memory, every: 1 }), 400, EVERY],
    [
      put(held.id, { ...http, headers: { 'X-Token': 'configured' } }),
      400,
      'headers has no value yet for X-Token; give it',
    ],
    [put(999, memory), 404, none],
    [`DELETE /api/v1/checks/${front.id}`, 409, ofFile],
    ['DELETE /api/v1/checks/999', 404, none],
    ['GET /api/v1/checks/x', 400, 'the check id must be an integer'],
    ['POST /api/v1/checks/999/run', 404, none],
    ['GET /api/v1/checks/999/history', 404, none],
    ['GET /api/v1/checks/1/history?before=0', 400, 'before must be a positive integer'],
    ['DELETE /api/v1/mutes/999', 404, 'mute not found'],
    [mute({ service: 'none', for: '1h' }), 404, 'there is no service "none" with checks'],
    [mute({ service: 'shop', check: 'none', for: '1h' }), 404, 'there is no check "shop/none"'],
    [mute({ check: 'front', for: '1h' }), 400, 'service must be given with check'],
    [mute({ ends_at: '2020-01-01T00:00:00Z' }), 400, 'ends_at must be in the future'],
    [mute({ for: '999999999d' }), 400, 'for must be a year at most'],
    [
      mute({ for: '1h', reason: undefined }),
      400,
      'reason is required and must say why, in 1 to 500 characters',
    ],
    [mute({ ...daily, tz: 'Mars/Base' }), 400, 'tz must be a time zone such as Europe/Berlin'],
    [mute({ ...daily, for: '1h' }), 400, 'every must be given without for, starts_at and ends_at'],
    [mute({ for: '1h', tz: 'UTC' }), 400, 'tz must not be given without every'],
    ...[
      'noon',
      'sat 02:00',
      'sat 02:00-02:00',
      'sat 02:00-24:30',
      'caturday 02:00-03:00',
      'sat-sun-mon 01:00-02:00',
      'sat 1:00-2:00',
    ].map((every) => [mute({ service: 'shop', every }), 400, HOURS] as const),
  ]
  const state = async () => [
    await query('select service, name, definition from ops.checks order by id'),
    await query('select * from ops.mutes'),
  ]
  await refuseAll(
    t,
    { service: 'ops', base, state },
    rows.map(([sent, status, text]): Refusal => [sent, status, undefined, text]),
  )
})

await t.test('the file wins, and what it leaves is there again', async () => {
  const both = { ...FRONT, name: 'both' }
  const { json: made } = await add('shop', { ...both, port })
  const path = `/checks/${made.id}`
  const counts = async (source: string, ...checks: readonly object[]) => {
    writeFileSync(file, JSON.stringify({ services: [{ name: 'shop', checks }] }))
    const isIt = async () => (await api<Check>('GET', path)).json.source === source
    await until(isIt, `the check of the ${source} to count`)
  }
  await counts('file', FRONT, both)
  await expectStatus(409, api('DELETE', path))
  await counts('hand', FRONT)
  await expectStatus(204, api('DELETE', path))
})

await t.test('what is tried is not stored, and runs no command', async (t) => {
  const before = [await list(), await auditOf(env)]
  const attempt = (fields: object) => {
    return postForm(base, '/checks/try', { type: 'tcp', host: '127.0.0.1', ...fields }, NAVIGATION)
  }
  for (const [fields, status, text] of [
    [{ port: String(port) }, 200, /id="tried"[\s\S]*takes connections[\s\S]*Not stored/],
    [{ port: '0' }, 400, 'Port must be &gt;= 1'],
    [{ type: 'command', port: '1' }, 400, 'Type must be one of'],
  ] as const) {
    t.match(await attempt(fields), { status, text })
  }
  t.same([await list(), await auditOf(env)], before)
})

await t.test('tries are bounded, and take no place of what is due', async () => {
  const held = new Set<Socket>()
  const silent = createServer((socket) => void held.add(socket))
  const url = `http://127.0.0.1:${await listen(t, silent)}/`
  const attempt = () => postForm(base, '/checks/try', { type: 'http', url }, NAVIGATION)
  const tried = [attempt(), attempt(), attempt(), attempt()]
  await until(() => held.size === 4, 'four tries')
  t.match(await attempt(), { status: 503, text: '4 checks are tried already' })
  await expectStatus(200, api('POST', `/checks/${front.id}/run`))
  for (const socket of held) socket.destroy()
  for (const one of tried) await expectStatus(200, one)
})

await t.test('pages, without script', async (t) => {
  const post = (path: string, fields = {}) => postForm(base, path, fields, NAVIGATION)
  t.match(await page('/checks/new'), /<option value="tcp">[\s\S]*Choose type/)
  t.notMatch(await page('/checks/new'), 'value="command"')
  const fields = { type: 'tcp', service: 'store', name: 'web', host: '127.0.0.1', every: '10m' }
  const refused = await expectStatus(400, post('/checks', { ...fields, port: '0' }))
  t.match(refused.text, /value="127\.0\.0\.1"[\s\S]*Port must be &gt;= 1/, 'with what was typed')
  const path = leadsTo(await post('/checks', { ...fields, port: String(port) }))
  t.match(path, /^\/checks\/\d+$/)
  await expectStatus(303, post(`${path}/run`))
  t.match(await page(path), /takes connections[\s\S]*made by hand[\s\S]*value="10m"/)
  await expectStatus(303, post(path, { ...fields, port: '1', every: '5m' }))
  t.match(await named('store/web'), { every_s: 300 })
  t.notMatch(await page(`/checks/${front.id}`), /Edit…|Remove…/, 'one of the file')

  const scope = { service: 'store', check: 'web', for: '1h', starts_at: '', reason: 'it moves' }
  t.equal(leadsTo(await post('/mutes', scope)), '/mutes')
  await post('/mutes', { for: '1h', starts_at: '2099-01-01T00:00:00Z', reason: 'all of it' })
  for (const shown of ['/checks', path, '/mutes']) {
    t.match(await page(shown), /it moves[\s\S]*operator/, shown)
  }
  await expectStatus(404, post(`/checks/${front.id}/unmute`), 'another one is muted')
  t.match(await page('/mutes'), /everything[\s\S]*to come[\s\S]*all of it[\s\S]*Cancel/)
  const [first, ...others] = await listOf<Check>(ops, 'mutes')
  await expectStatus(204, api('DELETE', `/mutes/${first?.id}`))
  for (const { id } of others) await expectStatus(303, post(`/mutes/${id}/delete`))
  t.match(await page('/mutes'), 'Nothing is muted')

  t.equal(leadsTo(await post(`${path}/delete`)), '/checks')
  t.equal(await named('store/web'), undefined)
  await expectStatus(404, request(`${base}/status`), 'the status page unless services are named')
})

const BERLIN = 'Europe/Berlin'

await t.test('the present time of a window, else the next one', (t) => {
  const rows = [
    // 2026-11-28 is a Saturday.
    ['sat,sun 02:00-04:00', 'UTC', '2026-11-28T03:00Z', '28T02:00 28T04:00'],
    ['sat,sun 02:00-04:00', 'UTC', '2026-11-28T04:00Z', '29T02:00 29T04:00'],
    ['Sat-Mon 02:00-04:00', 'UTC', '2026-11-29T12:00Z', '30T02:00 30T04:00'],
    ['fri 22:00-06:00', 'UTC', '2026-11-28T05:59Z', '27T22:00 28T06:00'],
    ['daily 03:00-03:30', 'Asia/Kolkata', '2026-11-27T21:00Z', '27T21:30 27T22:00'],
    // Whole days that follow each other are one time.
    ['sat-sun 00:00-24:00', 'UTC', '2026-11-28T12:00Z', '28T00:00 30T00:00'],
    // The night of 2026-03-29 has no 02:00 to 03:00 in Berlin, that of 2026-10-25 has it twice.
    ['sun 02:00-04:00', BERLIN, '2026-03-28T12:00Z', '29T01:00 29T02:00'],
    ['sun 02:00-04:00', BERLIN, '2026-10-24T12:00Z', '25T00:00 25T03:00'],
    ['sun 00:00-24:00', BERLIN, '2026-10-25T22:30Z', '24T22:00 25T23:00'],
  ] as const
  for (const [every, tz, now, expected] of rows) {
    const found = occurrenceAt(every, tz, new Date(now))
    const times = [found?.starts_at, found?.ends_at]
    const text = times.map((time) => time?.toISOString().slice(8, 16)).join(' ')
    t.equal(text, expected, `${every} ${tz} at ${now}`)
  }
  t.end()
})

await t.test('a mute that comes back', async (t) => {
  const muted = async () => (await named('shop/front'))?.muted_until
  const always = { service: 'shop', every: 'daily 00:00-24:00', reason: 'the shop moves' }

  const made = await api<{ id: number; tz: string; ends_at: string }>('POST', '/mutes', always)
  t.match(made, { status: 201, json: { tz: 'UTC' } })
  t.equal(await muted(), made.json.ends_at)

  await query(
    `update ops.mutes set starts_at = '2026-01-01', ends_at = '2026-01-02' where id = ${made.json.id}`,
  )
  const renewed = async () => {
    const sql = `select from ops.mutes where id = ${made.json.id} and ends_at > now()`
    return (await query(sql)).length === 1
  }
  await until(renewed, 'the round of checks to give it its next time')
  t.ok(await muted())

  // Of another service: it may be its time now.
  const form = { service: 'store', every: 'sat,sun 02:00-04:00', tz: BERLIN, reason: 'updates' }
  t.equal(leadsTo(await postForm(base, '/mutes', form, NAVIGATION)), '/mutes')
  const shown = /Every <bdi>sat,sun 02:00-04:00<\/bdi> \(<bdi>Europe\/Berlin<\/bdi>\)[^]*Remove/
  t.match(await page('/mutes'), shown)
  await expectStatus(204, api('DELETE', `/mutes/${made.json.id}`))
  t.equal(await muted(), null, 'also one whose time it is')
})

await t.test('the address of a heartbeat is shown once', async (t) => {
  const backup = { type: 'heartbeat', name: 'backup', period: '24h' }
  const { json } = await expectStatus(201, add('jobs', backup))
  const url = json.beat_url ?? ''
  t.match(url, new RegExp(`^${base}/beat/[\\w-]{32}$`))
  t.match(json, { check: { token_sha256: /^[0-9a-f]{64}$/ } })
  await expectStatus(200, request(url), 'it takes calls at once')
  await until(async () => /called \d+ s ago/.test(await page(`/checks/${json.id}`)), 'the call')
  for (const path of [`/checks/${json.id}`, '/checks', `/api/v1/checks/${json.id}`]) {
    t.notMatch((await request(base + path)).text, url.split('/').at(-1) ?? '', path)
  }
  const fields = { service: 'jobs', type: 'heartbeat', name: 'report', period: '1h' }
  const made = await expectStatus(200, postForm(base, '/checks', fields))
  const [shown = ''] = /\/beat\/[\w-]{32}/.exec(made.text) ?? []
  await expectStatus(200, request(base + shown))
})

await t.test('values of headers are sent, stored encrypted and never shown', async (t) => {
  const shop = await startReceiver(t)
  const key = secret('key')
  const headers = { authorization: `Bearer ${key}` }
  const plain = { type: 'http', name: 'sealed', url: shop.url, headers, every: '24h' }
  const { json } = await add('shop', plain)
  t.match(json, { check: { headers: { authorization: 'configured' } } })
  await until(() => shop.received.length > 0, 'the look')
  t.match(shop.received.at(-1)?.headers, headers)
  for (const path of [`/checks/${json.id}`, `/api/v1/checks/${json.id}`, '/checks', '/audit']) {
    t.notMatch((await request(base + path)).text, key, path)
  }
  t.notMatch(JSON.stringify(await query('select * from ops.checks')), key)
  const before = shop.received.length
  const kept = { ...plain, headers: { authorization: 'configured' } }
  await expectStatus(200, api('PUT', `/checks/${json.id}`, { check: kept }))
  await until(() => shop.received.length > before, 'another look')
  t.match(shop.received.at(-1)?.headers, headers, 'a value that stays is stored still')
  const cleared = await api('PUT', `/checks/${json.id}`, { check: { ...plain, headers: {} } })
  t.notMatch(cleared.text, 'authorization', 'an empty object is none')

  const sealer = createSecretBox(randomBytes(32), randomBytes)
  const place = { service: 'shop', name: 'web' }
  const sealed = sealHeaders(() => sealer, place, headers, {})
  const elsewhere = openHeaders(() => sealer, { ...place, name: 'other' }, sealed)
  t.same(elsewhere, { obstacle: "its headers can't be read: damaged" }, 'bound to their check')
  const unset = { status: 400, message: 'set GATEHOUSE_SECRET_KEY' }
  t.throws(() => sealHeaders(() => undefined, place, headers, {}), unset)
})

await t.test('the history of a check', async (t) => {
  const check = { type: 'memory', name: 'memory', max_percent: 100, every: '24h' }
  const { id } = (await add('host', check)).json
  await until(async () => /Lasted.*lasts/.test(await textOf(`/checks/${id}`)), 'the first look')
  const young = await api<History>('GET', `/checks/${id}/history`)
  t.same(young.json.uptime, { 1: 1, 7: null, 30: null, 90: null }, 'nothing is said of a month')
  t.match(await textOf(`/checks/${id}`), /Up in 1 day 100 % of \S+ (?:s|min) .*Up in 7 days – /s)
  await query(
    `with hours as (
       insert into ops.check_counts
       select ${id}, 'hour', date_trunc('hour', now()) - n * interval '1 hour', 60, 6, 0, 10, 5, 500, 20
         from generate_series(1, 20) as n
     ), days as (
       insert into ops.check_counts
       select ${id}, 'day', date_trunc('day', now(), 'UTC') - n * interval '1 day', 100, 25, 3, 0, 5, 1000, 20
         from generate_series(1, 60) as n
     )
     insert into ops.check_periods (check_id, state, began_at, ended_at, message, last_message)
     select ${id}, 'fail', now() - n * interval '1 day', now() - n * interval '1 day' + interval '5 min',
            '97 % of the memory used', '99 % of the memory used'
       from generate_series(60, 1, -1) as n`,
  )
  const { json } = await api<History>('GET', `/checks/${id}/history`)
  t.match(json, { name: 'memory', changes: { length: 50 }, days: { length: 61 } })
  const day = json.uptime['1'] ?? 0
  t.ok(day > 0.87 && day < 0.9, `${day}: what was unknown does not count`)
  t.ok(Math.abs((json.uptime['90'] ?? 0) - 0.75) < 0.01)
  const older = await api<History>('GET', `/checks/${id}/history?before=${json.older}`)
  t.match(older.json, { changes: { length: 11 }, older: null })
  const ids = [...json.changes, ...older.json.changes].map((change) => change.id)
  t.equal(new Set(ids).size, 61, 'each change is on one page')

  const text = await textOf(`/checks/${id}`)
  t.match(text, /Up in 1 day 8\d\.\d\d % Up in 7 days/)
  t.match(text, /fail .* 5 min 0 s 97 % of the memory used; at its end: 99 % of the memory used/)
  t.match(await textOf('/checks?service=host'), /90 days .*75\.\d\d %/)
  const figures = [
    'gatehouse_ops_check_up{service="jobs",name="backup"} 1',
    'gatehouse_ops_check_seconds{service="shop",name="front"} ',
  ]
  await until(async () => {
    const metrics = await page('/metrics')
    return figures.every((figure) => metrics.includes(figure))
  }, 'the figures to follow')
})
