import { t } from 'tap'
import { backends, eachBackend } from '../helpers/backends.ts'
import type { Test } from 'tap'
import { request } from '../helpers/http.ts'
import { makeLink, startLinks } from '../helpers/links-setup.ts'
import type { Caller, Link } from '../helpers/links-setup.ts'
import { run } from '../helpers/postgres.ts'
import { until } from '../helpers/until.ts'
import { leadsTo } from '../helpers/visits.ts'

const [, postgres] = backends
const STRANGER = { headers: { host: 'go.example' } }

function put({ api }: Caller, id: string, fields: object): Promise<{ readonly status: number }> {
  return api('PUT', `/links/${id}`, fields)
}

await eachBackend(
  t,
  'a change counts for the next visit to its server',
  async (t: Test, backend) => {
    const { base, user } = await startLinks(t, backend)
    const ann = await user('ann')
    t.equal(await leadsTo(base, '/docs'), 404)
    let link = await makeLink(ann, 'docs', { url: 'https://v0.test/' })
    for (let version = 1; version <= 20; version++) {
      const url = `https://v${version}.test/`
      // Some of these are being read from the database when the change comes.
      const during = Array.from({ length: 4 }, () => leadsTo(base, '/docs'))
      t.equal((await put(ann, link.id, { url })).status, 200)
      t.equal(await leadsTo(base, '/docs'), url)
      await Promise.all(during)
      t.equal(await leadsTo(base, '/docs'), url, 'also after those that were under way')
      if (version % 5 > 0) continue
      t.equal((await ann.api('DELETE', `/links/${link.id}`)).status, 204)
      t.equal(await leadsTo(base, '/docs'), 404)
      link = await makeLink(ann, 'docs', { url: `https://again${version}.test/` })
      t.equal(await leadsTo(base, '/docs'), `https://again${version}.test/`)
    }
    t.equal((await put(ann, link.id, { url: link.url, visibility: 'secure' })).status, 200)
    t.equal(await leadsTo(base, '/docs', STRANGER), 403)
    t.equal((await put(ann, link.id, { url: link.url, visibility: 'public' })).status, 200)
    t.equal(await leadsTo(base, '/docs', STRANGER), link.url)
  },
)

await t.test('a change counts on the other server', async (t) => {
  const one = await startLinks(t, postgres)
  const two = await startLinks(t, postgres, one.env)
  const ann = await one.user('ann')
  const marker = await makeLink(ann, 'marker', { url: 'https://m0.test/' })
  let docs: Link = await makeLink(ann, 'docs', { url: 'https://v0.test/' })
  let turn = 0

  /**
   * Notices come in the order of their commits: once the other server shows a later change of another
   * link that it had in memory, it must have taken this one. No clock is needed to say so.
   */
  async function whenTold(): Promise<void> {
    const url = `https://m${++turn}.test/`
    t.equal((await put(ann, marker.id, { url })).status, 200)
    await until(async () => (await leadsTo(two.base, '/marker')) === url, 'the other server', 5_000)
  }
  async function always(expected: string | number, what: string): Promise<void> {
    await whenTold()
    const seen = new Set<string | number>()
    for (let n = 0; n < 10; n++) seen.add(await leadsTo(two.base, '/docs', STRANGER))
    t.same([...seen], [expected], what)
  }

  await leadsTo(two.base, '/marker')
  await always('https://v0.test/', 'made')
  for (const url of ['https://v1.test/', 'https://v2.test/?q=1']) {
    await put(ann, docs.id, { url })
    await always(url, 'changed')
  }
  await put(ann, docs.id, { url: 'https://v3.test/', visibility: 'secure' })
  await always(403, 'secured')
  await put(ann, docs.id, { url: 'https://v4.test/', visibility: 'private', append_path: true })
  await always('https://v4.test/', 'opened')
  t.equal(await leadsTo(two.base, '/docs/x'), 'https://v4.test/x')
  await ann.api('DELETE', `/links/${docs.id}`)
  await always(404, 'deleted')
  docs = await makeLink(ann, 'docs', { url: 'https://v5.test/' })
  await always('https://v5.test/', 'made again')
})

await t.test('no visit sees an older version than the one before it', async (t) => {
  const one = await startLinks(t, postgres)
  const two = await startLinks(t, postgres, one.env)
  const ann = await one.user('ann')
  const link = await makeLink(ann, 'docs', { url: 'https://x.test/0' })
  let written = 0
  let isOver = false
  const back: string[] = []

  async function client(base: string, isWriter: boolean): Promise<number> {
    let newest = 0
    while (!isOver) {
      const least = isWriter ? written : 0
      const version = Number(
        String(await leadsTo(base, '/docs'))
          .split('/')
          .at(-1),
      )
      if (!(version >= newest && version >= least))
        back.push(`${version} after ${newest}, ${least}`)
      newest = version
    }
    return newest
  }

  const clients = [one.base, one.base, two.base, two.base].map((base) =>
    client(base, base === one.base),
  )
  for (let version = 1; version <= 40; version++) {
    t.equal((await put(ann, link.id, { url: `https://x.test/${version}` })).status, 200)
    written = version
  }
  await until(
    async () => (await leadsTo(two.base, '/docs')) === 'https://x.test/40',
    'the last',
    5_000,
  )
  isOver = true
  await Promise.all(clients)
  t.same(back, [])
})

await t.test('notices that were lost with their connection', async (t) => {
  const { base, env } = await startAlone(t)
  const url = env['DATABASE_URL'] ?? ''
  t.equal(await leadsTo(base, '/docs'), 'https://v0.test/')
  // Nobody announces this change, as if its notice had been lost.
  await run(url, "update links.links set url = 'https://v1.test/', visibility = 'private'")
  t.equal(await leadsTo(base, '/docs'), 'https://v0.test/', 'from memory')
  const ended = await run(
    url,
    `select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and application_name like 'gatehouse %'`,
  )
  t.ok(ended.length > 0)
  await until(async () => (await leadsTo(base, '/docs')) === 'https://v1.test/', 'the new url')
  t.same(
    new Set(await Promise.all(Array.from({ length: 10 }, () => leadsTo(base, '/docs')))),
    new Set(['https://v1.test/']),
  )
})

await t.test('memory is bounded', async (t) => {
  const { base, env } = await startAlone(t)
  await run(
    env['DATABASE_URL'] ?? '',
    `insert into links.links (slug, url, title, description, visibility, append_path, created_at, updated_at)
     select 'many-' || n, 'https://many.test/' || n, '', '', 'public', false, now(), now()
       from generate_series(1, 10200) as n`,
  )
  const wrong: number[] = []
  async function client(from: number): Promise<void> {
    for (let n = from; n <= 10_200; n += 8) {
      if ((await leadsTo(base, `/many-${n}`)) !== `https://many.test/${n}`) wrong.push(n)
    }
  }
  await Promise.all(Array.from({ length: 8 }, (_, at) => client(at + 1)))
  t.same(wrong, [])
  const { text } = await request(`${base}/metrics`)
  t.match(text, /^gatehouse_links_cached 10000$/m)
  t.equal(await leadsTo(base, '/many-1'), 'https://many.test/1', 'what was dropped is read again')
})

/** A server with a link of which no notice is on its way. */
async function startAlone(t: Test) {
  const links = await startLinks(t, postgres)
  await run(
    links.env['DATABASE_URL'] ?? '',
    `insert into links.links (slug, url, title, description, visibility, append_path, created_at, updated_at)
     values ('docs', 'https://v0.test/', '', '', 'public', false, now(), now())`,
  )
  return links
}
