import { randomBytes, randomUUID } from 'node:crypto'
import postgres from 'postgres'
import { t, type Test } from 'tap'
import type { Database } from '../../db/client.ts'
import { migrate } from '../../db/migrate.ts'
import { openDatabase } from '../../db/open.ts'
import { Unavailable } from '../../kernel/fault.ts'
import { systemClock } from '../../kernel/time.ts'
import { createLog } from '../../kernel/log.ts'
import { createMetrics } from '../../kernel/metrics.ts'
import { openClicks } from '../../services/links/visits/clicks.ts'
import { backends, onPostgres, type Backend } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import {
  BROWSER,
  insertLinks,
  makeLink,
  startLinks,
  visit,
  type LinksServer,
} from '../helpers/links.ts'
import type { Env } from '../helpers/program.ts'
import { transcript } from '../helpers/secrets.ts'
import { until } from '../helpers/until.ts'
import { startVisits } from '../helpers/load.ts'

const [, server] = backends

/** A migrated database without a server. */
async function ownDatabase(t: Test) {
  const env = await server.env(t)
  const log = createLog(
    (text) => transcript('log', text, 'clicks'),
    () => new Date(),
  )
  const opened = await openDatabase({ url: env['DATABASE_URL'], dataDirectory: '' }, log)
  t.teardown(() => opened[Symbol.asyncDispose]())
  await migrate(opened.db)
  return { db: opened.db, log, env }
}

/** What is counted: `SLUG KIND` → clicks. */
async function counted(backend: Backend, env: Env): Promise<Readonly<Record<string, number>>> {
  const rows = await backend.query(
    env,
    `select l.slug || ' ' || c.kind as name, sum(c.clicks)::int as clicks
       from links.clicks c join links.links l on l.id = c.link_id group by 1 order by 1`,
  )
  return Object.fromEntries(rows.map(({ name, clicks }) => [String(name), Number(clicks)]))
}

await onPostgres(t, 'what counts, and as what', async (t: Test, backend) => {
  const links = await startLinks(t, backend, {
    GATEHOUSE_TRUSTED_PROXIES: '127.0.0.1',
  })
  const { base, env } = links
  const ann = await links.user('ann')
  await makeLink(ann, 'docs')
  await makeLink(ann, 'secret', { visibility: 'secure' })
  const people = [
    BROWSER,
    'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 Safari/604.1',
    'Mozilla/5.0 (Linux; Android 10; CUBOT X18) AppleWebKit/537.36 Chrome/120.0 Mobile Safari/537.36',
  ]
  const programs = [
    'curl/8.0',
    'Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)',
    'Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)',
    'facebookexternalhit/1.1',
    'node',
    'Python-urllib/3.12',
    'WhatsApp/2.23.20.0',
    '',
  ]
  for (const agent of people) await visit(base, '/docs', { headers: { 'user-agent': agent } })
  for (const agent of programs) await visit(base, '/Docs', { headers: { 'user-agent': agent } })
  await visit(base, '/docs', { headers: { 'Sec-Purpose': 'prefetch;prerender' } })
  await visit(base, '/docs', { headers: { Purpose: 'prefetch' } })
  await visit(base, '/docs+')
  await visit(base, '/docs+', { headers: { 'user-agent': 'curl/8.0' } })
  for (const path of ['/docs', '/docs+', '/Docs']) await visit(base, path, { method: 'HEAD' })
  await visit(base, '/docs', { method: 'POST' })
  await visit(base, '/docs/further')
  await visit(base, '/secret')
  await visit(base, '/secret+')
  await visit(base, '/nothing')
  const from = { 'X-Forwarded-For': '203.0.113.77', 'Remote-Email': 'ann@example.com' }
  t.equal((await visit(base, '/secret', { headers: from })).status, 302)
  const today = new Date().toISOString().slice(0, 10)
  t.same(await links.server.stop(), { code: 0, signal: null })

  const expected = {
    'docs bot': programs.length + 2,
    'docs human': people.length,
    'docs preview': 2,
    'secret human': 1,
  }
  t.same(await counted(backend, env), expected)
  // One look is enough for the embedded engine, which starts for each.
  if (backend.name === 'embedded') return
  const days = await backend.query(env, 'select distinct day::text from links.clicks')
  t.ok(days.some(({ day }) => day === today || day === new Date().toISOString().slice(0, 10)))
  const tables = await backend.query(
    env,
    "select table_name::text as name from information_schema.tables where table_schema = 'links'",
  )
  for (const { name } of tables) {
    const rows = await backend.query(env, `select to_jsonb(x)::text as text from links.${name} x`)
    const text = rows.map((row) => String(row['text'])).join('\n')
    t.notMatch(text, /127\.0\.0\.1|203\.0\.113/, `no address in ${String(name)}`)
  }
})

await onPostgres(t, 'stopped under load: what was answered is counted', async (t: Test) => {
  const links = await startLinks(t, server)
  const ann = await links.user('ann')
  const slugs = Array.from({ length: 5 }, (_, n) => `link-${n}`)
  for (const slug of slugs) await makeLink(ann, slug)
  const load = startVisits(
    links.base,
    slugs.map((slug) => `/${slug}`),
  )
  await until(() => load.total > 300, 'the load to be under way')
  t.same(await links.server.stop(), { code: 0, signal: null })
  await load.ended

  t.same(load.others, [])
  const rows = await counted(server, links.env)
  for (const slug of slugs) {
    const received = load.redirected.get(`/${slug}`) ?? 0
    const clicks = rows[`${slug} human`] ?? 0
    t.ok(clicks >= received, `${slug}: ${clicks} counted of ${received} received`)
  }
  const clicks = Object.values(rows).reduce((sum, n) => sum + n, 0)
  t.ok(clicks <= load.total + load.unanswered, 'and at most what had no answer beside them')
})

await t.test('two servers add to the same rows', async (t) => {
  const one = await startLinks(t, server)
  const two = await startLinks(t, server, one.env)
  const ann = await one.user('ann')
  const paths = Array.from({ length: 50 }, (_, n) => `/link-${n}`)
  const owners = [ann.email]
  await insertLinks(
    one,
    server,
    paths.map((path) => ({ slug: path.slice(1), owners })),
  )
  let visited = 0
  /** Visits every link on both servers, in opposite orders: so their flushes would lock the rows. */
  async function visitAll(): Promise<void> {
    visited += 2
    const far = paths.toReversed()
    for (const [at, path] of paths.entries()) {
      await Promise.all([visit(one.base, path), visit(two.base, far[at] ?? '')])
    }
  }
  const isWritten = async ({ base }: LinksServer): Promise<boolean> =>
    /^gatehouse_links_clicks_waiting 0$/m.test((await request(`${base}/metrics`)).text)
  for (let flush = 1; flush <= 2; flush++) {
    await visitAll()
    await until(
      async () => (await isWritten(one)) && (await isWritten(two)),
      `flush ${flush}`,
      30_000,
    )
  }
  await visitAll()
  t.same(
    await Promise.all([one.server.stop(), two.server.stop()]),
    Array(2).fill({ code: 0, signal: null }),
  )

  const rows = await counted(server, one.env)
  for (const path of paths) t.equal(rows[`${path.slice(1)} human`], visited, path)
  for (const { server: either } of [one, two]) t.notMatch(either.logs().join('\n'), 'not written')
})

await t.test('a link that goes during a flush takes nothing with it', async (t) => {
  const { base, env, user, server: running } = await startLinks(t, server)
  const ann = await user('ann')
  for (const slug of ['goes', 'stays']) {
    await makeLink(ann, slug)
    await visit(base, `/${slug}`)
  }
  const all = async (): Promise<unknown> => counted(server, env)
  await until(async () => 'goes human' in (await counted(server, env)), 'a first flush')
  const sql = postgres(env['DATABASE_URL'] ?? '', { max: 1, onnotice: () => undefined })
  t.teardown(() => sql.end())
  await sql.begin(async (tx) => {
    await tx`delete from links.links where slug = 'goes'`
    for (const path of ['/goes', '/stays', '/goes+', '/stays+']) await visit(base, path)
    const waits = `select 1 from pg_stat_activity
      where wait_event_type = 'Lock' and query like '%links.click_writers%'`
    await until(async () => (await server.query(env, waits)).length > 0, 'the flush to wait')
  })
  const expected = { 'stays human': 2, 'stays preview': 1 }
  await until(async () => 'stays preview' in (await counted(server, env)), 'the others')
  t.same(await all(), expected)
  t.same(await running.stop(), { code: 0, signal: null })
  t.same(await all(), expected)
  t.notMatch(running.logs().join('\n'), /not written|lost|"level":"error"/)
})

await t.test('clicks of many links: short statements that read no other link', async (t) => {
  const links = await startLinks(t, server)
  const slugs = Array.from({ length: 3_000 }, (_, n) => `many-${n}`)
  const sql = postgres(links.env['DATABASE_URL'] ?? '', { max: 1, onnotice: () => undefined })
  t.teardown(() => sql.end())
  const query: typeof server.query = (_, text, params = []) => sql.unsafe(text, [...params])
  const backend = { ...server, query }
  await insertLinks(
    links,
    backend,
    slugs.map((slug) => ({ slug })),
  )
  // Otherwise PostgreSQL may count what these statements read only after `before`.
  await sql`select pg_stat_force_next_flush()`
  const figures = async (): Promise<Readonly<Record<string, unknown>>> => {
    const [row = {}] = await server.query(
      links.env,
      `select n_tup_upd::int as written, seq_tup_read::int as read
         from pg_stat_user_tables where relid = 'links.links'::regclass`,
    )
    return row
  }
  const before = await figures()
  for (const slug of slugs.slice(0, 5)) await visit(links.base, `/${slug}`)
  const after = await until(async () => {
    const now = await figures()
    return Number(now['written']) >= Number(before['written']) + 5 && now
  }, 'the clicks')
  t.equal(after['read'], before['read'], 'the table was not read through')
})

await t.test('clicks go in batches, each once, whatever becomes of an answer', async (t: Test) => {
  const { db, log, env } = await ownDatabase(t)
  const ids = Array.from({ length: 600 }, () => randomUUID())
  await insertLinks(
    { env },
    server,
    ids.map((id, n) => ({ id, slug: `many-${n}` })),
  )
  const sizes: number[] = []
  const failing: Database = {
    ...db,
    async run(query, args) {
      if (query.name !== 'saveClicks') return db.run(query, args)
      const clicks = args.find(Array.isArray) ?? []
      sizes.push(clicks.length)
      if (sizes.length === 3) throw new Unavailable('no answer')
      const rows = await db.run(query, args)
      if (sizes.length === 2) throw new Unavailable('the answer was lost')
      return rows
    },
  }
  const metrics = createMetrics()
  const tools = { db: failing, clock: systemClock, random: randomBytes, log, metrics }
  const options = { ...tools, ownHosts: () => false, stats: () => 'full' as const }
  const clicks = await openClicks(options)
  for (const id of ids) clicks.count(id, 'human', new Date())
  t.match(metrics.render(), /^gatehouse_links_clicks_waiting 600$/m)
  await until(() => sizes.length > 2, 'a batch whose answer is lost')
  t.match(metrics.render(), /^gatehouse_links_clicks_waiting 350$/m, 'one batch is written')
  for (const id of ids) clicks.count(id, 'human', new Date())
  await clicks.close()
  t.match(metrics.render(), /^gatehouse_links_clicks_waiting 0$/m)
  t.same(sizes, [250, 250, 250, 250, 100, 250, 250, 100])
  const rows = await server.query(
    env,
    `select sum(c.clicks)::int as of_days, sum(l.clicks)::int as of_links, count(*)::int as links
       from links.clicks c join links.links l on l.id = c.link_id where c.clicks = 2`,
  )
  t.same(rows, [{ of_days: 1_200, of_links: 1_200, links: 600 }])
})

await t.test('days are those of UTC, and a batch counts once', async (t: Test) => {
  const { db, log, env } = await ownDatabase(t)
  const [row] = await server.query(
    env,
    `insert into links.links (slug, url, title, description, visibility, append_path, created_at, updated_at)
     values ('docs', 'https://docs.test/', '', '', 'public', false, now(), now()) returning id::text`,
  )
  const id = String(row?.['id'])
  // The same process twice as far as the database can tell: batch 1 of the second is a repeat.
  const bytes = randomBytes(16)
  const open = (metrics = createMetrics()) =>
    openClicks({
      ...{ db, clock: systemClock, random: () => bytes, log, metrics },
      ...{ ownHosts: () => false, stats: () => 'full' },
    })
  const first = await open()
  for (const at of ['2026-01-31T23:59:59.999Z', '2026-02-01T00:00:00Z', '2026-02-01T23:59:59Z']) {
    first.count(id, 'human', new Date(at))
  }
  await first.close()
  const days = async (): Promise<unknown> =>
    server.query(env, 'select day::text, clicks::int from links.clicks order by day')
  const expected = [
    { day: '2026-01-31', clicks: 1 },
    { day: '2026-02-01', clicks: 2 },
  ]
  t.same(await days(), expected)
  const metrics = createMetrics()
  const repeat = await open(metrics)
  repeat.count(id, 'human', new Date('2026-02-01T12:00:00Z'))
  const waiting = /^gatehouse_links_clicks_waiting (\d+)$/m
  t.equal(waiting.exec(metrics.render())?.[1], '1')
  await until(() => waiting.exec(metrics.render())?.[1] === '0', 'the batch to be sent')
  t.same(await days(), expected, 'a batch that is there already')
  repeat.count(id, 'human', new Date('2026-02-01T12:00:00Z'))
  await repeat.close()
  t.match(await days(), [{}, { clicks: 3 }], 'the next one counts')
})
