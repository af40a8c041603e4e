import { createServer, type RequestListener } from 'node:http'
import { t } from 'tap'
import { makeLink, slugsIn, openPages, visit, visitorAt } from '../../helpers/links.ts'
import { listen } from '../../helpers/listen.ts'
import { inventoryFile } from '../../helpers/ops.ts'
import { expectStatus } from '../../helpers/refusals.ts'
import { startReceiver } from '../../helpers/replays.ts'
import { startServer } from '../../helpers/server.ts'
import { leadsTo } from '../../helpers/http.ts'
import { until } from '../../helpers/until.ts'
import { calm } from '../../helpers/notices.ts'
import { walk } from '../names/pagination-walk.ts'

type Report = {
  checked_links: readonly { slug: string; owners: readonly string[] }[]
  next_cursor: string | null
}
type Told = { service: string; message: string; url: string }

const links = await openPages(t, { LINKS_SCHEMES: 'tel' })
const { env, query, value } = links
const ann = await links.user('ann')
const bob = await links.user('bob')
const root = await links.user('root', { admin: true })

/** What hosts of a private network got, oldest first. */
const asked: { line: string; at: number; cookie: unknown }[] = []
/** What they answer to a path, to HEAD and to GET; 200 where it is not here. */
const answers = new Map([
  ['/get-only', [405, 200]],
  ['/moved', [302, 500]],
  ['/gone', [404, 404]],
  ['/gone-too', [410, 410]],
  ['/denied', [403, 401]],
  ['/busy', [429, 500]],
  ['/down', [503, 503]],
])
const answer: RequestListener = ({ method = '', url: path = '', headers }, response) => {
  const isHead = method === 'HEAD'
  asked.push({ line: `${method} ${path}`, at: performance.now(), cookie: headers.cookie })
  const [toHead = 200, toGet = 200] = answers.get(path) ?? []
  const sent = { 'set-cookie': 'a=b', location: '/elsewhere' }
  response.writeHead(isHead ? toHead : toGet, sent)
  if (isHead) response.end()
  // A body without end.
  else response.write('x')
}
const UNLISTED = 21
const ports = new Map<number, number>()
for (const host of [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, UNLISTED]) {
  const place = { port: 0, host: `127.0.0.${host}` }
  ports.set(host, await listen(t, createServer(answer), place))
}
/** An address on the host with this number. */
const at = (host: number, path: string) => `http://127.0.0.${host}:${ports.get(host)}${path}`
const listed = Array.from({ length: 20 }, (_, n) => `127.0.0.${n + 1}`).join(',')

const receiver = await startReceiver(t)
const checking = {
  ...env,
  LINKS_CHECK: 'daily',
  LINKS_CHECK_HOSTS: listed,
  LINKS_BASE_URL: 'https://go.example.com',
  OPS_NOTIFY_URL: `${receiver.url}/told`,
  OPS_INVENTORY: await inventoryFile(t, { services: [] }),
}
await calm(checking)
const start = () => startServer(t, { services: ['links', 'ops'], env: checking })
const told = (): readonly Told[] =>
  receiver.received
    .map(({ body }): Told => JSON.parse(body.toString()))
    .filter(({ service }) => service === 'links')

const ids = new Map<string, string>()
async function addLink(slug: string, url: string, fields: Record<string, unknown> = {}) {
  ids.set(slug, (await makeLink(ann, slug, { url, ...fields })).id)
}
const linkPath = (slug: string) => `/links/${ids.get(slug)}`
const checkPath = (slug: string) => `${linkPath(slug)}/check`
const checkOf = async (slug: string) => await ann.read(checkPath(slug))

/** Lets time pass: what is stored is this much older then. */
const pass = (hours: number) =>
  query(`update links.health
            set due_at = due_at - interval '${hours} hours', since = since - interval '${hours} hours',
                checked_at = checked_at - interval '${hours} hours',
                missing_since = missing_since - interval '${hours} hours'`)

/** Has the planned addresses that a condition chooses checked now. */
async function checkWhere(condition: string) {
  const begun = await value('select clock_timestamp()::text')
  await query(`update links.health set due_at = now() where ${condition}`)
  const rest = `select count(*)::int from links.health
    where ${condition} and (checked_at is null or checked_at < '${String(begun)}')`
  await until(async () => (await value(rest)) === 0, 'all checks', 60_000)
}

const ASKED = ['fine', 'get-only', 'moved', 'gone', 'gone-too', 'denied', 'busy', 'down']
for (const [n, slug] of ASKED.entries()) {
  const visibility = slug === 'gone-too' ? 'private' : 'public'
  await addLink(slug, at(n + 2, `/${slug}`), { visibility })
}
// No name server has a name with an empty part.
await addLink('nowhere', 'http://no..where/')
await addLink('unlisted', at(UNLISTED, '/unlisted'))
await addLink('own', 'https://go.example.com/fine')
await addLink('places', at(10, '/{1}'))
await addLink('user', at(10, '/?of={user}'))
await addLink('phone', 'tel:+49-30-1')
await addLink('secure', at(10, '/secure'), { visibility: 'secure' })
await addLink('archived', at(10, '/archived'), { archived: true })
await addLink('left-out', at(10, '/left-out'))
for (const n of [1, 2]) await addLink(`same-${n}`, at(11, `/same-${n}`))
const PLANNED = 13

await t.test('off: nothing is asked, and the page says so', async (t) => {
  t.match(await ann.text('/-/health'), /Checks are off.*LINKS_CHECK/s)
  t.match(await checkOf('fine'), { enabled: true, checkable: true, state: 'unchecked' })
  t.same(await query('select * from links.health'), [])
  t.same(asked, [])
})

await t.test('a link is left out, and checked again', async (t) => {
  const off = await ann.api('PUT', checkPath('left-out'), { enabled: false })
  t.match(off, { status: 200, json: { enabled: false, checkable: false } })
  await expectStatus(200, ann.api('PUT', checkPath('fine'), { enabled: false }))
  const path = `/-${linkPath('fine')}`
  t.equal(leadsTo(await ann.post(`/-${checkPath('fine')}`, { enabled: 'true' })), path)
  t.match(await checkOf('fine'), { enabled: true, checkable: true })
  t.match(await ann.text(path), /had the address checked again.*left the address out/s)
})

await t.test('what is refused changes nothing', async (t) => {
  const path = checkPath('fine')
  const call = `PUT ${path}`
  const state = () => checkOf('fine')
  const enabled = [400, 'BAD_REQUEST', 'enabled is required and must be true or false'] as const
  await ann.refused(t, state, [
    [{ call, body: {} }, ...enabled],
    [{ call, body: { enabled: 'no' } }, ...enabled],
    ['GET /checked-links?state=bad', 400, 'BAD_REQUEST', 'state must be broken, unknown or ok'],
    ['GET /links/00000000-0000-4000-8000-000000000000/check', 404, 'NOT_FOUND'],
    ['GET /admin/missing-slugs', 403, 'FORBIDDEN'],
  ])
  await bob.refused(t, state, [
    [`GET ${path}`, 403, 'FORBIDDEN'],
    [{ call, body: { enabled: false } }, 403, 'FORBIDDEN'],
  ])
  await expectStatus(403, ann.get('/-/admin/missing'))
  await expectStatus(403, bob.post(`/-${path}`))
})

const isPlanned = async () => (await value('select count(*)::int from links.health')) === PLANNED
async function startTwo() {
  const first = await start()
  // Two instances that plan at the same time may put off what a test has made due meanwhile.
  await until(isPlanned, 'all checks to be planned')
  return [first, await start()] as const
}
let servers = await startTwo()
const pages = (email: string) => visitorAt(servers[0].links, email)

await t.test('two instances check each address once', async (t) => {
  const spread = `select count(*)::int from links.health where due_at > now() and due_at <= now() + interval '1 day'`
  t.ok(Number(await value(spread)) > PLANNED / 2, 'spread over the day')
  t.same(asked, [])
  await checkWhere('true')
  const failed = ['/denied', '/down', '/get-only', '/gone', '/gone-too']
  const wanted = [
    ...failed.map((path) => `GET ${path}`),
    ...[...failed, '/busy', '/fine', '/moved', '/same-1', '/same-2'].map((path) => `HEAD ${path}`),
  ]
  t.same(asked.map(({ line }) => line).toSorted(), wanted.toSorted())
  t.ok(asked.every(({ cookie }) => cookie === undefined))
  const [one = 0, other = 0] = asked.flatMap(({ line, at }) => (line.includes('/same') ? at : []))
  t.ok(other - one > 900, 'a host is asked once a second')
})

const UNKNOWN = {
  gone: 'its server answers 404',
  'gone-too': 'its server answers 410',
  nowhere: 'its host does not exist',
}

await t.test('what one look says', async (t) => {
  for (const slug of ['fine', 'get-only', 'moved', 'same-1', 'same-2']) {
    t.match(await checkOf(slug), { state: 'ok', problem: null }, slug)
  }
  const unknown = {
    ...UNKNOWN,
    denied: 'its server answers 401',
    busy: 'its server answers 429',
    down: 'its server answers 503',
    unlisted: 'not asked: its host is not on the public internet, nor in LINKS_CHECK_HOSTS',
    own: 'not asked: it leads to this server',
  }
  for (const [slug, problem] of Object.entries(unknown)) {
    t.match(await checkOf(slug), { state: 'unknown', problem }, slug)
  }
  for (const slug of ['places', 'phone', 'secure', 'archived', 'left-out']) {
    t.match(await checkOf(slug), { state: 'unchecked', checkable: false }, slug)
  }
  t.same(await ann.read('/checked-links'), { checked_links: [], next_cursor: null })
})

await t.test('they are broken a day after the first look, also after a restart', async (t) => {
  await pass(23)
  await checkWhere('missing_since is not null')
  for (const slug of Object.keys(UNKNOWN)) t.match(await checkOf(slug), { state: 'unknown' })
  t.same(told(), [], 'less than a day later nothing is said')
  for (const one of servers) await one.stop()
  await pass(2)
  servers = await startTwo()
  const broken = async () => {
    const { checked_links: found } = await ann.read<Report>('/checked-links')
    return found.length === 3 && found
  }
  t.match(
    await until(broken, 'three broken links'),
    Object.keys(UNKNOWN).map((slug) => ({ slug, owners: [ann.email] })),
  )
})

await t.test('the report: own links for users, all for admins, by page', async (t) => {
  t.match(await bob.read('/checked-links'), { checked_links: { length: 0 } })
  const list = { path: '/checked-links', rows: 'checked_links', key: 'slug' } as const
  t.same((await walk(root.api, list, 2)).keys, Object.keys(UNKNOWN))
  const own = pages(ann.email)
  const text = await own.text('/-/health')
  t.same(slugsIn(text), Object.keys(UNKNOWN))
  t.match(text, 'each address is checked daily')
  const before = `select count(*)::int from links.health where checked_at < now() - interval '1 day'`
  await until(async () => (await value(before)) === 0, 'the second look at all')
  // A machine that stands still for ten seconds may not have had the answer of another one, either.
  const expected = await query(
    `select slug from links.health where state = 'unknown' order by slug`,
  )
  const shown = slugsIn(await pages(root.email).text('/-/health?state=unknown'))
  t.same(
    shown,
    expected.map(({ slug }) => slug),
  )
  for (const slug of ['busy', 'denied', 'down', 'own', 'unlisted'])
    t.ok(shown.includes(slug), slug)
  t.match(await own.text('/-/'), /data-slug="gone".*?>broken</s)
  const page = await own.text(`/-${linkPath('gone')}`)
  t.match(page, /Broken since.*because its server answers 404/s)
})

await t.test('owners are named once in a notice, which ends when the link is well', async (t) => {
  await until(() => told().length >= 3, 'three notices')
  const messages = () => told().map(({ message }) => message)
  t.same(messages().toSorted(), [
    'A private link of ann@example.com is broken: its server answers 410',
    'The link gone of ann@example.com is broken: its server answers 404',
    'The link nowhere of ann@example.com is broken: its host does not exist',
  ])
  for (const { url } of told()) t.match(url, 'https://go.example.com/-/links/')
  await ann.api('PUT', linkPath('nowhere'), { url: at(2, '/fine') })
  t.match(await checkOf('nowhere'), { state: 'unchecked' }, 'another address')
  answers.delete('/gone')
  await pass(24)
  await until(() => told().length === 5, 'the end of both', 60_000)
  const over = 'Over: The link gone of ann@example.com is broken: its server answers 404'
  t.ok(messages().includes(over))
  t.match(await checkOf('gone'), { state: 'ok' })
})

await t.test('missing slugs: asked for most first, for admins', async (t) => {
  const [server] = servers
  for (const slug of ['wiki', 'Wiki', 'wiki/a', 'lunch', 'wp-login.php', 'Übung', 'wanted']) {
    await expectStatus(404, visit(server.links, `/${encodeURI(slug)}`))
  }
  await visit(server.links, '/lunch', { method: 'HEAD' })
  await makeLink(ann, 'wanted')
  // What is counted is written every ten seconds, and at the end.
  await server.stop()
  const listed = await root.read<{ missing_slugs: readonly object[] }>('/admin/missing-slugs')
  t.match(listed.missing_slugs, [
    { slug: 'wiki', visits: 3 },
    { slug: 'lunch', visits: 1 },
  ])
  t.same(slugsIn(await root.text('/-/admin/missing')), ['wiki', 'lunch'])
})

await t.test('of a flood of slugs a thousand are kept', async (t) => {
  const [, server] = servers
  await query(`insert into links.missing_slugs (day, slug, visits)
    select (now() at time zone 'UTC')::date, 'flood-' || n, 1 from generate_series(1, 990) n`)
  for (let n = 0; n < 30; n++) await visit(server.links, `/late-${n}`)
  await server.stop()
  t.equal(await value('select count(*)::int from links.missing_slugs'), 1_000)
  const wiki = await value("select visits::int from links.missing_slugs where slug = 'wiki'")
  t.equal(wiki, 3, 'what is asked for more stays')
})
