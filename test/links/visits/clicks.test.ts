import { randomBytes, randomUUID } from 'node:crypto'
import { t } from 'tap'
import type { Database } from '../../../db/client.ts'
import { Unavailable } from '../../../kernel/fault.ts'
import { createMetrics } from '../../../kernel/metrics.ts'
import { openClicks } from '../../../services/links/visits/visits/clicks.ts'
import {
  listedAll,
  makeLink,
  slugsIn,
  openLinks,
  openPages,
  visit,
  visitorAt,
  type Caller,
  type Headers,
  type LinksServer,
  type Visitor,
} from '../../helpers/links.ts'
import { startVisits } from '../../helpers/load.ts'
import { expectStatus, refuseAll } from '../../helpers/refusals.ts'
import { openTimed } from '../../helpers/timed.ts'
import { until } from '../../helpers/until.ts'

interface Stats {
  total: number
  by_kind: { preview: number }
  referrers: { host: string; visits: number }[]
  clients: { name: string; visits: number }[]
}

const links = await openPages(t)
const { base, env, query } = links
const ann = await links.user('ann')
const bob = await links.user('bob')
const cyd = await links.user('cyd')
const root = await links.user('root', { admin: true })

/** The statistics of a link, once so many visits are in the database with their sources. */
async function statsWith({ api }: Caller, id: string, visits: number, previews = 0) {
  return until(async () => {
    const { json } = await expectStatus(200, api<Stats>('GET', `/links/${id}/stats`))
    const sums = [json.clients, json.referrers].map((rows) =>
      rows.reduce((sum, row) => sum + row.visits, 0),
    )
    const isAll = [json.total, ...sums].every((sum) => sum === visits)
    return isAll && json.by_kind.preview >= previews && json
  }, `${visits} visits and ${previews} previews`)
}

const SAFARI =
  'Mozilla/5.0 (Macintosh) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18 Safari/605.1.15'
const CHROME =
  'Mozilla/5.0 (X11; Linux) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Safari/537.36'
const EDGE = `${CHROME} Edg/140.0`

/** As these programs name themselves. */
const PREVIEWS = [
  'Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)',
  'Mozilla/5.0 (compatible; Discordbot/2.0; +https://discordapp.com)',
  'TelegramBot (like TwitterBot)',
  'WhatsApp/2.23.20.0 A',
  'MicrosoftPreview/2.0 +https://aka.ms/browserpolicydoc',
  'Mozilla/5.0 (Windows NT 6.1; WOW64) SkypeUriPreview Preview/0.5 skype-url-preview@microsoft.com',
  'facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)',
  `${SAFARI} facebookexternalhit/1.1 Facebot Twitterbot/1.0`,
  'Twitterbot/1.0',
  'LinkedInBot/1.0 (compatible; Mozilla/5.0; Apache-HttpClient +http://www.linkedin.com)',
  'Mattermost-Bot/1.1',
]

await t.test('what counts, from where, and with what', async (t) => {
  const { id } = await makeLink(ann, 'docs')
  const secure = await makeLink(ann, 'secret', { visibility: 'secure' })
  const came = async (headers: Headers) => visit(base, '/docs', { headers })
  await came({})
  for (const referer of [
    'https://wiki.example.com/a?secret=b',
    'http://Wiki.Example.com:8080',
    `${base}/-/all`,
    'android-app://com.slack/',
    'http://192.0.2.7/',
    'http://[2001:db8::7]/',
    'no address',
    'file:///etc/x',
    `https://${'long.'.repeat(120)}example.com/`,
  ]) {
    await came({ referer })
  }
  const agents = [CHROME, EDGE, SAFARI, 'a secret browser', 'curl/8.0', 'a bot', '', ...PREVIEWS]
  for (const agent of agents) await came({ 'user-agent': agent })
  // What is loaded ahead.
  await came({ 'sec-purpose': 'prefetch;prerender' })
  await came({ purpose: 'prefetch' })
  await came({ 'x-moz': 'prefetch' })
  await visit(base, '/docs+')
  const head = { method: 'HEAD', headers: { referer: 'https://head.test/' } }
  for (const path of ['/docs', '/docs+']) await visit(base, path, head)
  await visit(base, '/docs', { method: 'POST' })
  for (const path of ['/docs/further', '/secret', '/secret+', '/nothing']) await visit(base, path)
  const named = { 'X-Forwarded-For': '203.0.113.77', 'Remote-Email': ann.email }
  await expectStatus(302, visit(base, '/secret', { headers: named }))

  const preview = 4 + PREVIEWS.length
  const stats = await statsWith(ann, id, 17, preview)
  t.same(stats.by_kind, { human: 14, bot: 3, preview })
  const hosts = stats.referrers.map(({ host, visits }) => `${host} ${visits}`)
  t.equal(hosts.join(', '), 'direct 8, wiki.example.com 2, com.slack 1, self 1, other 5')
  const clients = stats.clients.map(({ name, visits }) => `${name} ${visits}`)
  const programs = 'Chrome 1, Edge 1, Safari 1, curl 1, other program 1, unnamed 1, other 1'
  t.equal(clients.join(', '), `Firefox 10, ${programs}`)
  t.match(stats, { days: { length: 1 }, last_visit: new Date().toISOString().slice(0, 4) })
  await statsWith(ann, secure.id, 1)
  const tables = await query(
    "select table_name::text as name from information_schema.tables where table_schema = 'links'",
  )
  for (const { name } of tables) {
    const rows = await query(`select to_jsonb(x)::text as text from links.${String(name)} x`)
    const text = rows.map((row) => String(row['text'])).join('\n')
    const addresses = /127\.0\.0\.1|203\.0\.113|192\.0\.2|head\.test/
    t.notMatch(text, addresses, `${String(name)}: no address`)
    if (name === 'click_sources') t.notMatch(text, /secret|2001|8080|\/\//, 'only hosts and kinds')
  }

  const path = `/links/${id}`
  const before = await ann.read(`${path}/stats`)
  await ann.api('DELETE', path)
  await expectStatus(404, ann.api('GET', `${path}/stats`))
  await expectStatus(200, ann.api('POST', `${path}/restore`))
  t.same(await ann.read(`${path}/stats`), before, 'a restored link has its statistics')
})

await t.test('for owners and admins, by API and on the page', async (t) => {
  const eve = await links.user('eve')
  const people = { owners: [bob.email], shares: [cyd.email] }
  const { id } = await makeLink(ann, 'owned', people)
  const path = `/links/${id}/stats`
  t.match(await ann.read(path), { total: 0, last_visit: null, days: [], referrers: [] })
  for (const referer of ['https://wiki.example.com/', 'https://<b>.example.com/']) {
    await visit(base, '/owned', { headers: { referer } })
  }
  await statsWith(ann, id, 2)
  for (const { read } of [bob, root]) t.match(await read(path), { total: 2 })
  const creates = await links.token(ann.email, { scope: 'create' })
  const state = () => ann.read(path)
  const call = (token: string, of = path) => {
    return { call: `GET ${of}`, headers: { authorization: `Bearer ${token}` } }
  }
  const unknown = '/links/00000000-0000-4000-8000-000000000000/stats'
  await refuseAll(t, { service: 'links', base: `${base}/api/v1`, headers: {}, state }, [
    [
      call(cyd.token),
      403,
      'FORBIDDEN',
      'the statistics of a link are for its owners and for admins',
    ],
    [call(eve.token), 403, 'FORBIDDEN', 'this link is not yours to read; ask one of its owners'],
    [call(creates), 403, 'FORBIDDEN', 'this token has scope create, which does not reach here'],
    [`GET ${path}`, 401, 'UNAUTHORIZED', 'unauthorized'],
    [call(ann.token, unknown), 404, 'NOT_FOUND', 'no link has this id'],
    [call(ann.token, '/links/x/stats'), 400, 'BAD_REQUEST', 'id in the path must be a UUID'],
  ])

  const today = new Date().toISOString().slice(0, 10)
  for (const who of [bob, root]) {
    const text = await who.text(`/-/links/${id}`)
    t.match(text, `<title>${today}: 2 people, 0 programs, 0 previews</title>`, 'the hover text')
    t.match(text, /<bdi>wiki\.example\.com<[^]*<bdi>Firefox</)
  }
  const shared = await expectStatus(200, cyd.get(`/-/links/${id}`))
  t.notMatch(shared.text, /wiki\.example|Clicks in|class="chart/, 'not for recipients')
})

await t.test('50 hosts a link and day, over both instances', async (t) => {
  const two = await openLinks(t, env)
  const { id } = await makeLink(ann, 'crowded')
  const hosts = Array.from({ length: 40 }, (_, n) => `https://host-${n}.example.com/`)
  const others = hosts.map((host) => host.replace('host', 'far'))
  async function come(at: string, from: readonly string[]) {
    for (const referer of from) await visit(at, '/crowded', { headers: { referer } })
  }
  await come(base, hosts)
  await statsWith(ann, id, 40)
  await Promise.all([come(base, hosts), come(two.base, [...hosts, ...others])])
  const { referrers } = await statsWith(ann, id, 160)
  const visits = [...Array(40).fill(3), ...Array(10).fill(1), 30]
  t.same(
    referrers.map((one) => one.visits),
    visits,
  )
  t.equal(referrers.at(-1)?.host, 'other')
})

await t.test('LINKS_STATS=totals: numbers alone, and what was counted goes', async (t) => {
  const first = await openLinks(t)
  const ann = await first.user('ann')
  const { id } = await makeLink(ann, 'docs')
  const headers = { referer: 'https://wiki.example.com/' }
  await visit(first.base, '/docs', { headers })
  await statsWith(ann, id, 1)
  await first.server.stop()
  const links = await openLinks(t, { ...first.env, LINKS_STATS: 'totals' })
  await visit(links.base, '/docs', { headers })
  const api = links.api(ann.token)
  const stats = await until(async () => {
    const { json } = await api<Stats>('GET', `/links/${id}/stats`)
    return json.total === 2 && json
  }, 'two visits')
  t.match(stats, { referrers: { length: 0 }, clients: { length: 0 } })
  const left = 'select count(*)::int from links.click_sources'
  const isEmpty = async () => (await links.value(left)) === 0
  await until(isEmpty, 'retention to remove what was counted')
})

await t.test('most used, and unused for 90 days', async (t) => {
  const [ada, ben] = [await links.user('ada'), await links.user('ben')]
  await query('update links.links set clicks = 0')
  const many = Array.from({ length: 60 }, (_, n) => `old-${String(n).padStart(2, '0')}`)
  const own = ['busy', 'calm', 'fresh', 'hidden', ...many].map((slug) => ({
    slug,
    owners: [ada.email],
    shares: [ben.email],
    visibility: slug === 'hidden' ? 'private' : 'public',
  }))
  await links.store([...own, { slug: 'bobs', owners: [ben.email] }])
  await query(`update links.links l set clicks = v.clicks, clicked_at = now() - v.days * interval '1 day'
    from (values ('busy', 9, 0), ('calm', 3, 91), ('hidden', 7, 89), ('bobs', 5, 200)) v (slug, clicks, days)
    where l.slug = v.slug`)
  await query(`update links.links set created_at = now() - interval '100 days'
    where slug like 'old-%' or slug = 'busy'`)

  /** The list of the most used links, and what follows. */
  const usage = async (who: Visitor, path = '/-/usage') => {
    const [used = '', unused = ''] = (await who.text(path)).split('id="unused-title"')
    return [slugsIn(used), unused] as const
  }
  const [used, unused] = await usage(ada)
  t.same(used, ['busy', 'hidden', 'calm'])
  t.match(unused, 'never, created')
  t.same(await listedAll(ada, '/-/usage', 'unused'), ['busy', 'hidden', 'calm', ...many, 'calm'])
  const [bens, bensUnused] = await usage(ben)
  t.same([bens, slugsIn(bensUnused)], [['bobs'], ['bobs']], 'not those that are shared')
  t.same((await usage(root, '/-/admin/usage'))[0], ['busy', 'hidden', 'bobs', 'calm'])
  t.same((await listedAll(root, '/-/admin/usage', 'unused')).slice(4), ['bobs', ...many, 'calm'])
  await expectStatus(403, ada.get('/-/admin/usage'))
  await expectStatus(403, visitorAt(base, '').get('/-/usage'))
  const foreign = Buffer.from(JSON.stringify(['a', 'links'])).toString('base64url')
  for (const cursor of ['x', foreign]) {
    await expectStatus(400, ada.get(`/-/usage?cursor=${cursor}`), cursor)
  }
})

await t.test('stopped under load: what was answered is counted', async (t) => {
  const links = await openLinks(t)
  const ann = await links.user('ann')
  const slugs = Array.from({ length: 5 }, (_, n) => `link-${n}`)
  for (const slug of slugs) await makeLink(ann, slug)
  const paths = slugs.map((slug) => `/${slug}`)
  const load = startVisits(links.base, paths)
  await until(() => load.total > 300, 'the load to be under way')
  t.same(await links.server.stop(), { code: 0, signal: null })
  await load.ended

  t.same(load.others, [])
  const rows = await links.query(
    `select '/' || l.slug as path, sum(c.clicks)::int as clicks
       from links.clicks c join links.links l on l.id = c.link_id where c.kind = 'human' group by 1`,
  )
  const counts = new Map(rows.map(({ path, clicks }) => [path, Number(clicks)]))
  for (const path of paths) {
    const received = load.redirected.get(path) ?? 0
    const clicks = counts.get(path) ?? 0
    t.ok(clicks >= received, `${path}: ${clicks} counted of ${received} received`)
  }
  const clicks = counts.values().reduce((sum, n) => sum + n, 0)
  t.ok(clicks <= load.total + load.unanswered, 'and at most what had no answer beside them')
})

await t.test('clicks go in batches, each once, whatever becomes of an answer', async (t) => {
  const { db, clock, log } = await openTimed(t, 'clicks', { env })
  const ids = Array.from({ length: 600 }, () => randomUUID())
  await links.store(ids.map((id, n) => ({ id, slug: `many-${n}` })))
  const sizes: number[] = []
  const failing: Database = {
    ...db,
    async transaction(work) {
      const done = await db.transaction((tx) =>
        work({
          ...tx,
          run(query, args) {
            if (query.name !== 'saveClicks') return tx.run(query, args)
            sizes.push((args.find(Array.isArray) ?? []).length)
            if (sizes.length === 3) throw new Unavailable('no answer')
            return tx.run(query, args)
          },
        }),
      )
      if (sizes.length === 2) throw new Unavailable('the answer was lost')
      return done
    },
  }
  let tick = () => {}
  const ticking = {
    ...clock,
    every(_ms: number, callback: () => void) {
      tick = callback
      return () => {}
    },
  }
  const metrics = createMetrics()
  const tools = { db: failing, clock: ticking, random: randomBytes, log, metrics }
  const options = { ...tools, ownHosts: () => false, stats: () => 'full' as const }
  const clicks = await openClicks(options)
  for (const id of ids) clicks.count(id, 'human', new Date())
  t.match(metrics.render(), /^gatehouse_links_clicks_waiting 600$/m)
  await until(() => {
    if (sizes.length < 3) tick()
    return sizes.length > 2
  }, 'a batch whose answer is lost')
  t.match(metrics.render(), /^gatehouse_links_clicks_waiting 350$/m, 'one batch is written')
  // Days are those of UTC.
  for (const id of ids) clicks.count(id, 'human', new Date('2026-01-31T23:59:59.999Z'))
  await clicks.close()
  t.match(metrics.render(), /^gatehouse_links_clicks_waiting 0$/m)
  t.same(sizes, [250, 250, 250, 250, 100, 250, 250, 100])
  const rows = await query(
    `select c.day::text, sum(c.clicks)::int as clicks, count(*)::int as links, sum(l.clicks)::int as sums
       from links.clicks c join links.links l on l.id = c.link_id where l.slug like 'many-%'
      group by day order by day`,
  )
  const sums = { clicks: 600, links: 600, sums: 1_200 }
  t.match(rows, [{ day: '2026-01-31', ...sums }, sums])
})

/** Clicks of 29 days, and of 12 old ones of which the first is kept, ten a day, by people and programs. */
const CLICKS = `
insert into links.clicks (link_id, day, kind, clicks)
select id, (now() at time zone 'UTC')::date - n, kind, 5
  from links.links
 cross join (select generate_series(0, 28) union all select generate_series(1095, 1106)) d (n)
 cross join (values ('human'), ('bot')) k (kind)`
/** Of the same days; months are removed as a whole. */
const SOURCES = `
insert into links.click_sources (link_id, day, referrers, clients)
select id, (now() at time zone 'UTC')::date - n, '{"direct": 10}', '{"curl": 10}'
  from links.links
 cross join (select generate_series(0, 28) union all values (1095) union all select generate_series(1127, 1137)) d (n)`
const SUMS = "update links.links set clicks = 410 where slug <> 'never'"

/** So many changes of a link, one a minute, the newest so many days ago. */
const CHANGES = `
insert into links.changes (link_id, at, actor, action, detail)
select id, now() - $3 * interval '1 day' - n * interval '1 minute', 'ann@example.com', 'edited',
       jsonb_build_object('title', jsonb_build_array('before ' || $1 || ' ' || n, 'title ' || $1 || ' ' || n))
  from links.links cross join generate_series($2::int - 1, 0, -1) n
 where slug = $1`

/** Days of clicks that are stored, and changes of each link. */
async function stored({ query }: LinksServer) {
  const clicks = await query(
    `select count(distinct day)::int as days, count(*)::int as rows,
            min(day) = (now() at time zone 'UTC')::date - 1095 as "from the first day kept",
            (select sum((referrers ->> 'direct')::int)::int from links.click_sources) as sources,
            (select count(*)::int from links.click_sources
              where day < (now() at time zone 'UTC')::date - 29
                and extract(day from day) <> 1) as "days that are no months"
       from links.clicks`,
  )
  const changes = await query(
    `select slug, count(c.id)::int as changes
       from links.links l left join links.changes c on c.link_id = l.id
      where slug in ('busy', 'calm', 'lately') group by slug order by slug`,
  )
  return [...clicks, ...changes]
}

await t.test('what is old is removed, and sums stay', async (t) => {
  const first = await openPages(t)
  const ann = await first.user('ann')
  const names = ['busy', 'calm', 'lately', 'never']
  await first.store(names.map((slug) => ({ slug, owners: [ann.email] })))
  t.same(await first.server.stop(), { code: 0, signal: null })
  await first.query(CLICKS)
  await first.query(SOURCES)
  await first.query(SUMS)
  await first.query(CHANGES, ['busy', 1_300, 100])
  await first.query(CHANGES, ['calm', 40, 1_000])
  await first.query(CHANGES, ['lately', 80, 89])

  const links = await openLinks(t, first.env)
  const logged = await until(
    () => links.server.logs().find((line) => line.includes('"pruned"')),
    'retention',
  )
  t.match(JSON.parse(logged), { clicks: 4 * 11 * 2, sources: 4 * 11, changes: 1_250 })
  t.same(await stored(links), [
    {
      days: 30,
      rows: 4 * 30 * 2,
      'from the first day kept': true,
      sources: 4 * 30 * 10,
      'days that are no months': 0,
    },
    { slug: 'busy', changes: 50 },
    { slug: 'calm', changes: 40 },
    { slug: 'lately', changes: 80 },
  ])

  const root = await links.user('root', { admin: true })
  const list = await root.text('/-/all?sort=clicks')
  t.equal(slugsIn(list).at(-1), 'never', 'links stay in the order of all their clicks')
  t.match(list, '>410<')
  // The first row is that of busy.
  const [path = ''] = /\/-\/links\/[0-9a-f-]+/.exec(list) ?? []
  t.match(await root.text(path), /145 people[^]*title busy 0[^]*title busy 49/)
})
