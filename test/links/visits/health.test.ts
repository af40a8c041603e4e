import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { t } from 'tap'
import { makeLink, slugsIn, openPages, visit, visitorAt } from '../../helpers/links.ts'
import { inventoryFile } from '../../helpers/ops.ts'
import { expectStatus } from '../../helpers/refusals.ts'
import { startReceiver } from '../../helpers/replays.ts'
import { startServer, type TestServer } from '../../helpers/server.ts'
import { leadsTo } from '../../helpers/http.ts'
import { until } from '../../helpers/until.ts'
import { calm } from '../../helpers/notices.ts'

/** What the API says of a link's check. */
type Check = { readonly state: string; readonly problem: string | null; readonly since: string }
type Report = {
  readonly checked_links: readonly { slug: string; owners: readonly string[] }[]
  readonly next_cursor: string | null
}
type Told = { readonly service: string; readonly message: string; readonly url: string }

const links = await openPages(t, { LINKS_SCHEMES: 'tel' })
const { env, query } = links
const ann = await links.user('ann')
const bob = await links.user('bob')
const root = await links.user('root', { admin: true })

/** What hosts of a private network got, oldest first. */
const asked: { method: string; path: string; at: number; cookie: unknown }[] = []
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
  asked.push({ method, path, at: performance.now(), cookie: headers.cookie })
  const [toHead = 200, toGet = 200] = answers.get(path) ?? []
  response.writeHead(method === 'HEAD' ? toHead : toGet, {
    'set-cookie': 'a=b',
    location: '/elsewhere',
  })
  if (method === 'HEAD') response.end()
  // A body without end.
  else response.write('x')
}
const UNLISTED = 21
const ports = new Map<number, number>()
for (const host of [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, UNLISTED]) {
  const server = createServer(answer)
  await new Promise<void>((resolve) => server.listen(0, `127.0.0.${host}`, resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  ports.set(host, (server.address() as AddressInfo).port)
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
const checkPath = (slug: string) => `/links/${ids.get(slug) ?? ''}/check`
const checkOf = async (slug: string) => await ann.read<Check>(checkPath(slug))

/** Lets time pass: what is stored is this much older then. */
const pass = (hours: number) =>
  query(`update links.health
            set due_at = due_at - interval '${hours} hours', since = since - interval '${hours} hours',
                checked_at = checked_at - interval '${hours} hours',
                missing_since = missing_since - interval '${hours} hours'`)

/** Has all planned addresses checked now. */
async function checkAll(): Promise<void> {
  const [now] = await query('select clock_timestamp()::text as now')
  const begun = String(now?.['now'])
  await query('update links.health set due_at = now()')
  await until(
    async () => {
      const rest = `select count(*)::int as n from links.health
        where checked_at is null or checked_at < '${begun}'`
      return (await query(rest))[0]?.['n'] === 0
    },
    'all checks',
    60_000,
  )
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
  const path = `/-/links/${ids.get('fine') ?? ''}`
  t.equal(leadsTo(await ann.post(`${path}/check`, { enabled: 'true' })), path)
  t.match(await checkOf('fine'), { enabled: true, checkable: true })
  t.match(await ann.text(path), /had the address checked again.*left the address out/s)
})

await t.test('what is refused changes nothing', async (t) => {
  const path = checkPath('fine')
  const state = () => checkOf('fine')
  await ann.refused(t, state, [
    [
      { call: `PUT ${path}`, body: {} },
      400,
      'BAD_REQUEST',
      'enabled is required and must be true or false',
    ],
    [
      { call: `PUT ${path}`, body: { enabled: 'no' } },
      400,
      'BAD_REQUEST',
      'enabled is required and must be true or false',
    ],
    ['GET /checked-links?state=bad', 400, 'BAD_REQUEST', 'state must be broken, unknown or ok'],
    ['GET /links/00000000-0000-4000-8000-000000000000/check', 404, 'NOT_FOUND'],
    ['GET /admin/missing-slugs', 403, 'FORBIDDEN'],
  ])
  await bob.refused(t, state, [
    [`GET ${path}`, 403, 'FORBIDDEN'],
    [{ call: `PUT ${path}`, body: { enabled: false } }, 403, 'FORBIDDEN'],
  ])
  await expectStatus(403, ann.get('/-/admin/missing'))
  await expectStatus(403, bob.post(`/-/links/${ids.get('fine') ?? ''}/check`, {}))
})

let servers: readonly TestServer[] = []
const pages = (email: string) => visitorAt(servers[0]?.links ?? '', email)

await t.test('two instances check each address once', async (t) => {
  servers = await Promise.all([start(), start()])
  const count = async () =>
    (await query('select count(*)::int as n from links.health'))[0]?.['n'] === PLANNED
  await until(count, 'all checks to be planned')
  const spread = `select count(*)::int as n from links.health
    where due_at > now() and due_at <= now() + interval '1 day'`
  t.ok(Number((await query(spread))[0]?.['n']) > PLANNED / 2, 'spread over the day')
  t.same(asked, [])
  await checkAll()
  const requests = asked.map(({ method, path }) => `${method} ${path}`)
  const failed = ['/denied', '/down', '/get-only', '/gone', '/gone-too']
  const wanted = [
    ...failed.map((path) => `GET ${path}`),
    ...[...failed, '/busy', '/fine', '/moved', '/same-1', '/same-2'].map((path) => `HEAD ${path}`),
  ]
  t.same(requests.toSorted(), wanted.toSorted())
  t.ok(asked.every(({ cookie }) => cookie === undefined))
  const [one, other] = asked.filter(({ path }) => path.startsWith('/same'))
  t.ok((other?.at ?? 0) - (one?.at ?? 0) > 900, 'a host is asked once a second')
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
  const unlisted = 'not asked: its host is not on the public internet, nor in LINKS_CHECK_HOSTS'
  const unknown = {
    ...UNKNOWN,
    denied: 'its server answers 401',
    busy: 'its server answers 429',
    down: 'its server answers 503',
    unlisted,
    own: 'not asked: it leads to this server',
  }
  for (const [slug, problem] of Object.entries(unknown)) {
    t.match(await checkOf(slug), { state: 'unknown', problem }, slug)
  }
  for (const slug of ['places', 'phone', 'secure', 'archived', 'left-out']) {
    t.match(await checkOf(slug), { state: 'unchecked', checkable: false }, slug)
  }
  const none = await ann.api<Report>('GET', '/checked-links')
  t.same(none.json, { checked_links: [], next_cursor: null })
})

await t.test('they are broken a day after the first look, also after a restart', async (t) => {
  await pass(23)
  await checkAll()
  for (const slug of Object.keys(UNKNOWN)) t.match(await checkOf(slug), { state: 'unknown' })
  t.same(told(), [], 'less than a day later nothing is said')
  for (const one of servers) await one.stop()
  await pass(2)
  servers = await Promise.all([start(), start()])
  const broken = async () => {
    const json = await ann.read<Report>('/checked-links')
    return json.checked_links.length === 3 && json
  }
  const { checked_links: found } = await until(broken, 'three broken links', 30_000)
  t.same(
    found.map(({ slug, owners }) => [slug, ...owners]),
    Object.keys(UNKNOWN).map((slug) => [slug, 'ann@example.com']),
  )
})

await t.test('the report: own links for users, all for admins, by page', async (t) => {
  t.same((await bob.read<Report>('/checked-links')).checked_links, [])
  const first = await root.api<Report>('GET', '/checked-links?limit=2')
  const cursor = encodeURIComponent(first.json.next_cursor ?? '')
  const last = await root.api<Report>('GET', `/checked-links?limit=2&cursor=${cursor}`)
  const all = [first, last].flatMap(({ json }) => json.checked_links.map(({ slug }) => slug))
  t.same(all, Object.keys(UNKNOWN))
  t.equal(last.json.next_cursor, null)
  const { text } = await pages(ann.email).get('/-/health')
  t.same(slugsIn(text), Object.keys(UNKNOWN))
  t.match(text, 'each address is checked daily')
  const unknown = await pages(root.email).get('/-/health?state=unknown')
  t.same(slugsIn(unknown.text), ['busy', 'denied', 'down', 'own', 'unlisted'])
  t.match((await pages(ann.email).get('/-/')).text, /data-slug="gone".*?>broken</s)
  const page = await pages(ann.email).get(`/-/links/${ids.get('gone') ?? ''}`)
  t.match(page.text, /Broken since.*because its server answers 404/s)
})

await t.test('owners are named once in a notice, which ends when the link is well', async (t) => {
  await until(() => told().length >= 3, 'three notices', 30_000)
  const messages = () => told().map(({ message }) => message)
  t.same(messages().toSorted(), [
    'A private link of ann@example.com is broken: its server answers 410',
    'The link gone of ann@example.com is broken: its server answers 404',
    'The link nowhere of ann@example.com is broken: its host does not exist',
  ])
  for (const { url } of told()) t.match(url, 'https://go.example.com/-/links/')
  answers.delete('/gone')
  await pass(24)
  const over = 'Over: The link gone of ann@example.com is broken: its server answers 404'
  await until(() => messages().includes(over), 'the end', 60_000)
  t.match(await checkOf('gone'), { state: 'ok' })
  await ann.api('PUT', `/links/${ids.get('nowhere') ?? ''}`, { url: at(2, '/fine') })
  t.match(await checkOf('nowhere'), { state: 'unchecked' }, 'another address')
  await until(() => told().length === 5, 'the end of a link with another address', 30_000)
})

await t.test('missing slugs: asked for most first, for admins', async (t) => {
  const other = servers[0]?.links ?? ''
  for (const slug of ['wiki', 'Wiki', 'wiki/a', 'lunch', 'wp-login.php', 'Übung', 'wanted']) {
    await expectStatus(404, visit(other, `/${encodeURI(slug)}`))
  }
  await visit(other, '/lunch', { method: 'HEAD' })
  await makeLink(ann, 'wanted')
  type Missing = { readonly missing_slugs: readonly { slug: string; visits: number }[] }
  await until(async () => {
    const { missing_slugs: all } = await root.read<Missing>('/admin/missing-slugs')
    return all.map(({ slug, visits }) => `${slug} ${visits}`).join(', ') === 'wiki 3, lunch 1'
  }, 'all counts to be written')
  const page = await root.get('/-/admin/missing')
  t.same(slugsIn(page.text), ['wiki', 'lunch'])
})

await t.test('of a flood of slugs a thousand are kept', async (t) => {
  const other = servers[1]?.links ?? ''
  await query(`insert into links.missing_slugs (day, slug, visits)
    select (now() at time zone 'UTC')::date, 'flood-' || n, 1 from generate_series(1, 990) n`)
  for (let n = 0; n < 30; n++) await visit(other, `/late-${n}`)
  const kept = async () => (await query('select count(*)::int as n from links.missing_slugs'))[0]
  await until(async () => Number((await kept())?.['n']) >= 1_000, 'the counts to be written')
  await servers[1]?.stop()
  t.same(await kept(), { n: 1_000 })
  const wiki = await query("select visits::int from links.missing_slugs where slug = 'wiki'")
  t.same(wiki, [{ visits: 3 }], 'what is asked for more stays')
})
