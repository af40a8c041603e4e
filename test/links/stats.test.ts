import { t, type Test } from 'tap'
import { backends, onPostgres } from '../helpers/backends.ts'
import {
  insertLinks,
  listedAll,
  makeLink,
  pageUser,
  startLinks,
  startPages,
  visit,
  visitorAt,
  type Caller,
  type Headers,
} from '../helpers/links.ts'
import { run } from '../helpers/postgres.ts'
import { refuseAll } from '../helpers/refusals.ts'
import { until } from '../helpers/until.ts'

const [, postgres] = backends

interface Stats {
  total: number
  by_kind: { human: number; bot: number; preview: number }
  last_visit: string | null
  days: { day: string; visits: number }[]
  referrers: { host: string; visits: number }[]
  clients: { name: string; visits: number }[]
}

/** The statistics of a link, once so many visits are in the database with their sources. */
async function statsWith({ api }: Caller, id: string, visits: number): Promise<Stats> {
  return until(async () => {
    const { status, json } = await api<Stats>('GET', `/links/${id}/stats`)
    if (status !== 200) throw new Error(`stats answered ${status}`)
    const sums = [json.clients, json.referrers].map((rows) =>
      rows.reduce((sum, row) => sum + row.visits, 0),
    )
    return [json.total, ...sums].every((sum) => sum === visits) && json
  }, `${visits} visits`)
}

const SAFARI =
  'Mozilla/5.0 (Macintosh) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18 Safari/605.1.15'
const CHROME =
  'Mozilla/5.0 (X11; Linux) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Safari/537.36'
const EDGE = `${CHROME} Edg/140.0`

await onPostgres(t, 'from where, and with what', async (t: Test, backend) => {
  const links = await startLinks(t, backend)
  const ann = await links.user('ann')
  const { id } = await makeLink(ann, 'docs')
  const came = async (headers: Headers) => visit(links.base, '/docs', { headers })
  const from = async (referer: string) => came({ referer })
  await came({})
  for (const address of ['https://wiki.example.com/a?secret=b', 'http://Wiki.Example.com:8080']) {
    await from(address)
  }
  await from('android-app://com.slack/')
  await from(`${links.base}/-/all`)
  for (const odd of [
    'http://192.0.2.7/',
    'http://[2001:db8::7]/',
    'no address',
    'file:///etc/x',
  ]) {
    await from(odd)
  }
  await from(`https://${'long.'.repeat(120)}example.com/`)
  for (const agent of [CHROME, EDGE, SAFARI, 'a secret browser', 'curl/8.0', 'Slackbot 1.0', '']) {
    await came({ 'user-agent': agent })
  }
  await came({ 'sec-purpose': 'prefetch' })
  await visit(links.base, '/docs+')
  await visit(links.base, '/docs', { method: 'HEAD', headers: { referer: 'https://head.test/' } })

  const stats = await statsWith(ann, id, 18)
  t.same(stats.by_kind, { human: 14, bot: 4, preview: 1 })
  t.same(stats.referrers, [
    { host: 'direct', visits: 9 },
    { host: 'wiki.example.com', visits: 2 },
    { host: 'com.slack', visits: 1 },
    { host: 'self', visits: 1 },
    { host: 'other', visits: 5 },
  ])
  t.same(stats.clients, [
    { name: 'Firefox', visits: 11 },
    { name: 'Chrome', visits: 1 },
    { name: 'Edge', visits: 1 },
    { name: 'Safari', visits: 1 },
    { name: 'Slack', visits: 1 },
    { name: 'curl', visits: 1 },
    { name: 'unnamed', visits: 1 },
    { name: 'other', visits: 1 },
  ])
  t.equal(
    stats.days.reduce((sum, { visits }) => sum + visits, 0),
    18,
  )
  t.ok(Math.abs(Date.parse(stats.last_visit ?? '') - Date.now()) < 60_000, 'the last visit')
  await links.server.stop()
  const [row] = await backend.query(
    links.env,
    'select jsonb_agg(to_jsonb(s))::text as text from links.click_sources s',
  )
  t.notMatch(row?.['text'], /secret|192\.0\.2|2001|8080|\/\//, 'only hosts and kinds are stored')
})

await t.test('for owners and admins, by API and on the page', async (t) => {
  const links = await startPages(t, postgres)
  const [ann, bob, cyd, eve] = [
    await pageUser(links, 'ann'),
    await pageUser(links, 'bob'),
    await pageUser(links, 'cyd'),
    await pageUser(links, 'eve'),
  ]
  const root = await pageUser(links, 'root', { admin: true })
  const { id } = await makeLink(ann, 'docs')
  const path = `/links/${id}/stats`
  await ann.api('POST', `/links/${id}/owners`, { email: bob.email })
  await ann.api('POST', `/links/${id}/shares`, { email: cyd.email })
  const before = await ann.api<Stats>('GET', path)
  t.same(before.json, {
    total: 0,
    by_kind: { human: 0, bot: 0, preview: 0 },
    last_visit: null,
    days: [],
    referrers: [],
    clients: [],
  })
  const referer = 'https://<b>.example.com/'
  await visit(links.base, '/docs', { headers: { referer: 'https://wiki.example.com/' } })
  await visit(links.base, '/docs', { headers: { referer } })
  await statsWith(ann, id, 2)
  for (const { api } of [bob, root]) t.equal((await api<Stats>('GET', path)).json.total, 2)
  const reading = { api: links.api(await links.token(ann.email, { scope: 'read' })) }
  t.equal((await reading.api('GET', path)).status, 200, 'a token that reads')

  const creates = `Bearer ${await links.token(ann.email, { scope: 'create' })}`
  const call = `GET ${path}`
  const UNKNOWN = 'GET /links/00000000-0000-4000-8000-000000000000/stats'
  const by = ({ token }: Caller) => ({ headers: { authorization: `Bearer ${token}` } })
  const state = async () => (await ann.api('GET', path)).json
  await refuseAll(t, { service: 'links', base: `${links.base}/api/v1`, headers: {}, state }, [
    [{ call, ...by(cyd) }, 403, 'FORBIDDEN', /^the statistics of a link are for its owners/],
    [{ call, ...by(eve) }, 403, 'FORBIDDEN', /^this link is not yours to read/],
    [{ call, headers: { authorization: creates } }, 403, 'FORBIDDEN', /scope create/],
    [{ call }, 401, 'UNAUTHORIZED', 'unauthorized'],
    [{ call: UNKNOWN, ...by(ann) }, 404, 'NOT_FOUND', 'no link has this id'],
    [{ call: 'GET /links/x/stats', ...by(ann) }, 400, 'BAD_REQUEST', /UUID/],
  ])

  const today = new Date().toISOString().slice(0, 10)
  for (const who of [ann, bob, root]) {
    const { text } = await who.get(`/-/links/${id}`)
    t.match(text, `<title>${today}: 2 people, 0 programs, 0 previews</title>`, 'the hover text')
    t.match(text, '<bdi>wiki.example.com</bdi>')
    t.match(text, '<bdi>Firefox</bdi>')
  }
  const shared = await cyd.get(`/-/links/${id}`)
  t.equal(shared.status, 200)
  t.notMatch(shared.text, /wiki\.example|Clicks in|class="chart/, 'not for recipients')
})

await t.test('50 hosts a link and day, over both instances', async (t) => {
  const one = await startLinks(t, postgres)
  const two = await startLinks(t, postgres, one.env)
  const ann = await one.user('ann')
  const { id } = await makeLink(ann, 'docs')
  const hosts = Array.from({ length: 40 }, (_, n) => `https://host-${n}.example.com/`)
  const others = hosts.map((host) => host.replace('host', 'far'))
  async function come(base: string, from: readonly string[]): Promise<void> {
    for (const referer of from) await visit(base, '/docs', { headers: { referer } })
  }
  await come(one.base, hosts)
  await statsWith(ann, id, 40)
  await Promise.all([come(one.base, hosts), come(two.base, [...hosts, ...others])])
  const { referrers } = await statsWith(ann, id, 160)
  t.equal(referrers.length, 51)
  t.same(referrers.at(-1), { host: 'other', visits: 30 })
  t.same(new Set(referrers.slice(0, 40).map(({ visits }) => visits)), new Set([3]))

  const flood = Array.from({ length: 120 }, (_, n) => `https://flood-${n}.example.com/`)
  const { id: flooded } = await makeLink(ann, 'flooded')
  for (const referer of flood) await visit(one.base, '/flooded', { headers: { referer } })
  const stats = await statsWith(ann, flooded, 120)
  t.equal(stats.referrers.length, 51)
  t.same(stats.referrers.at(-1), { host: 'other', visits: 70 })
})

await t.test('LINKS_STATS=totals: numbers alone, and what was counted goes', async (t) => {
  const first = await startLinks(t, postgres)
  const ann = await first.user('ann')
  const { id } = await makeLink(ann, 'docs')
  const headers = { referer: 'https://wiki.example.com/' }
  await visit(first.base, '/docs', { headers })
  await statsWith(ann, id, 1)
  await first.server.stop()
  const links = await startLinks(t, postgres, { ...first.env, LINKS_STATS: 'totals' })
  await visit(links.base, '/docs', { headers })
  const api = links.api(ann.token)
  const stats = await until(async () => {
    const { json } = await api<Stats>('GET', `/links/${id}/stats`)
    return json.total === 2 && json
  }, 'two visits')
  t.match(stats, { by_kind: { human: 2 }, referrers: [], clients: [] })
  t.equal(stats.days.length > 0, true)
  const left = 'select count(*)::int as n from links.click_sources'
  const isEmpty = async () => (await run(links.env['DATABASE_URL'] ?? '', left))[0]?.['n'] === 0
  await until(isEmpty, 'retention to remove what was counted')
})

await t.test('a deleted link that is restored has its statistics', async (t) => {
  const links = await startLinks(t, postgres)
  const ann = await links.user('ann')
  const { id } = await makeLink(ann, 'docs')
  await visit(links.base, '/docs', { headers: { referer: 'https://wiki.example.com/' } })
  const before = await statsWith(ann, id, 1)
  await ann.api('DELETE', `/links/${id}`)
  t.equal((await ann.api('GET', `/links/${id}/stats`)).status, 404)
  t.equal((await ann.api('POST', `/links/${id}/restore`)).status, 200)
  t.same((await ann.api<Stats>('GET', `/links/${id}/stats`)).json, before)
})

await onPostgres(t, 'most used, and unused for 90 days', async (t: Test) => {
  const links = await startPages(t, postgres)
  const ann = await pageUser(links, 'ann')
  const bob = await pageUser(links, 'bob')
  const root = await pageUser(links, 'root', { admin: true })
  const url = links.env['DATABASE_URL'] ?? ''
  const many = Array.from({ length: 60 }, (_, n) => `old-${String(n).padStart(2, '0')}`)
  const own = ['busy', 'calm', 'fresh', 'hidden', ...many].map((slug) => ({
    slug,
    owners: [ann.email],
    shares: [bob.email],
    visibility: slug === 'hidden' ? 'private' : 'public',
  }))
  await insertLinks(links, postgres, [...own, { slug: 'bobs', owners: [bob.email] }])
  const set = (fields: string, where: string) =>
    run(url, `update links.links set ${fields} where ${where}`)
  await set('clicks = 9, clicked_at = now()', "slug = 'busy'")
  await set("clicks = 3, clicked_at = now() - interval '91 days'", "slug = 'calm'")
  await set("clicks = 7, clicked_at = now() - interval '89 days'", "slug = 'hidden'")
  await set("clicks = 5, clicked_at = now() - interval '200 days'", "slug = 'bobs'")
  await set("created_at = now() - interval '100 days'", "slug like 'old-%' or slug = 'busy'")

  const page = await ann.get('/-/usage')
  const [used = '', unused = ''] = page.text.split('id="unused-title"')
  const slugs = (text: string) =>
    [...text.matchAll(/data-slug="([^"]*)"/g)].map(([, slug]) => slug)
  t.same(slugs(used), ['busy', 'hidden', 'calm'])
  t.match(unused, /never, created/)
  t.same(await listedAll(ann, '/-/usage', 'unused'), ['busy', 'hidden', 'calm', ...many, 'calm'])
  const bobs = await bob.get('/-/usage')
  t.same(slugs(bobs.text), ['bobs', 'bobs'], 'not those that are shared')
  const all = await root.get('/-/admin/usage')
  t.same(slugs(all.text.split('id="unused-title"')[0] ?? ''), ['busy', 'hidden', 'bobs', 'calm'])
  t.same((await listedAll(root, '/-/admin/usage', 'unused')).slice(4), ['bobs', ...many, 'calm'])
  t.equal((await ann.get('/-/admin/usage')).status, 403)
  t.equal((await visitorAt(links.base, '').get('/-/usage')).status, 403)
  const foreign = Buffer.from(JSON.stringify(['a', 'links'])).toString('base64url')
  for (const cursor of ['x', foreign]) {
    t.equal((await ann.get(`/-/usage?cursor=${cursor}`)).status, 400, cursor)
  }
})
