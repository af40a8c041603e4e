import { randomUUID } from 'node:crypto'
import { t, type Test } from 'tap'
import { createMetrics } from '../../kernel/metrics.ts'
import { openTargetCache } from '../../services/links/visits/visits/target-cache.ts'
import { postgres } from '../helpers/backends.ts'
import {
  insertLinks,
  leadsTo,
  makeLink,
  openLinks,
  type Caller,
  type LinksServer,
} from '../helpers/links.ts'
import { openTimed } from '../helpers/timed.ts'
import { until } from '../helpers/until.ts'
import { expectStatus } from '../helpers/refusals.ts'

const NO_VISITS = {
  writer: randomUUID(),
  startReading: () => ({ unwritten: () => 0, [Symbol.dispose]: () => undefined }),
}
const STRANGER = { headers: { host: 'go.example' } }

const put = ({ api }: Caller, id: string, fields: object) => api('PUT', `/links/${id}`, fields)

await t.test('two servers on one database', async (t: Test) => {
  const one = await openLinks(t)
  const two = await openLinks(t, one.env)
  const ann = await one.user('ann')

  await t.test('a change counts for the next visit to its server', (t) =>
    countsAtOnce(t, one.base, ann),
  )
  await t.test('a change counts on the other server', (t) => countsElsewhere(t, two, ann))
})

async function countsAtOnce(t: Test, base: string, ann: Caller) {
  t.equal(await leadsTo(base, '/docs'), 404)
  let link = await makeLink(ann, 'docs', { url: 'https://v0.test/' })
  for (const url of ['https://v1.test/', 'https://v2.test/', 'https://v3.test/']) {
    // Some of these are being read from the database when the change comes.
    const during = Array.from({ length: 4 }, () => leadsTo(base, '/docs'))
    await expectStatus(200, put(ann, link.id, { url }))
    t.equal(await leadsTo(base, '/docs'), url)
    await Promise.all(during)
    t.equal(await leadsTo(base, '/docs'), url, 'also after those that were under way')
  }
  await expectStatus(204, ann.api('DELETE', `/links/${link.id}`))
  t.equal(await leadsTo(base, '/docs'), 404)
  link = await makeLink(ann, 'docs', { url: 'https://again.test/' })
  await expectStatus(200, put(ann, link.id, { url: link.url, visibility: 'secure' }))
  t.equal(await leadsTo(base, '/docs', STRANGER), 403)
  await expectStatus(200, put(ann, link.id, { url: link.url, visibility: 'public' }))
  t.equal(await leadsTo(base, '/docs', STRANGER), link.url)
}

async function countsElsewhere(t: Test, other: LinksServer, ann: Caller) {
  const { base } = other
  const marker = { slug: 'marker', id: randomUUID(), owners: [ann.email] }
  // No notice of it is on its way.
  await other.store([marker])
  let docs = await makeLink(ann, 'far', { url: 'https://v0.test/' })
  let turn = 0

  /**
   * Notices come in the order of their commits: once the other server shows a later change of another
   * link that it had in memory, it must have taken this one. No clock is needed to say so.
   */
  async function whenTold() {
    const url = `https://m${++turn}.test/`
    await expectStatus(200, put(ann, marker.id, { url }))
    await until(async () => (await leadsTo(base, '/marker')) === url, 'the other server')
  }
  async function always(expected: string | number, what: string) {
    await whenTold()
    const seen = new Set<string | number>()
    for (let n = 0; n < 5; n++) seen.add(await leadsTo(base, '/far', STRANGER))
    t.same([...seen], [expected], what)
  }

  await leadsTo(base, '/marker')
  await always('https://v0.test/', 'made')
  await put(ann, docs.id, { url: 'https://v1.test/' })
  await always('https://v1.test/', 'changed')
  await put(ann, docs.id, { url: 'https://v3.test/', visibility: 'secure' })
  await always(403, 'secured')
  await put(ann, docs.id, { url: 'https://v4.test/', visibility: 'private', append_path: true })
  await always('https://v4.test/', 'opened')
  t.equal(await leadsTo(base, '/far/x'), 'https://v4.test/x')
  await ann.api('DELETE', `/links/${docs.id}`)
  await always(404, 'deleted')
  docs = await makeLink(ann, 'f-ar', { url: 'https://v5.test/' })
  await always('https://v5.test/', 'made again, by another spelling')
  const { id: second } = await makeLink(ann, 'fa-r')
  await always(404, 'either may be meant')
  await ann.api('DELETE', `/links/${second}`)
  await put(ann, docs.id, { url: 'https://v6.test/', aliases: ['far'] })
  await always('https://v6.test/', 'by an alias')
  await ann.api('PUT', `/links/${docs.id}/slug`, { slug: 'further' })
  await put(ann, docs.id, { url: 'https://v7.test/', aliases: ['f-ar'] })
  await always('https://v7.test/', 'renamed, without the alias')
  t.equal(await leadsTo(base, '/further'), 'https://v7.test/')
}

await t.test('notices that were lost with their connection', async (t) => {
  const links = await openLinks(t)
  const { base, query } = links
  // No notice of it is on its way.
  await links.store([{ slug: 'docs', url: 'https://v0.test/' }])
  t.equal(await leadsTo(base, '/docs'), 'https://v0.test/')
  // Nobody announces this change, as if its notice had been lost.
  await query("update links.links set url = 'https://v1.test/', visibility = 'private'")
  t.equal(await leadsTo(base, '/docs'), 'https://v0.test/', 'from memory')
  const ended = await query(
    `select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and application_name like 'gatehouse %'`,
  )
  t.ok(ended.length > 0)
  await until(async () => (await leadsTo(base, '/docs')) === 'https://v1.test/', 'the new url')
})

await t.test('links in memory', async (t) => {
  const { env, db } = await openTimed(t, 'resolver')
  const slugs = Array.from({ length: 60 }, (_, n) => `many-${n}`)
  const long = `https://long.test/${'x'.repeat(2_000)}`
  const links = slugs.map((slug) => ({ slug }))
  await insertLinks({ env }, postgres, [...links, { slug: 'long', url: long }])
  const now = Date.now()

  await t.test('take a bounded number of bytes', async (t) => {
    const metrics = createMetrics()
    const cache = await openTargetCache(db, metrics, NO_VISITS, 20_000)
    const isKnown = (slug: string) => cache.fresh(`/${slug}`, now) !== undefined
    for (const slug of slugs) t.equal((await cache.find(slug, now, 'trusted')).link?.slug, slug)
    const known = slugs.filter(isKnown)
    t.ok(known.length > 20 && known.length < 60, `${known.length} are kept`)
    t.same(known, slugs.slice(-known.length), 'the newest')
    t.match(metrics.render(), new RegExp(`^gatehouse_links_cached ${known.length}$`, 'm'))
    const bytes = Number(/^gatehouse_links_cached_bytes (\d+)$/m.exec(metrics.render())?.[1])
    t.ok(bytes > 19_000 && bytes <= 20_000, `they take ${bytes} bytes`)
    t.equal((await cache.find('many-0', now, 'trusted')).link?.slug, 'many-0', 'it is read again')
    await cache.find('long', now, 'trusted')
    const left = slugs.filter(isKnown).length
    t.ok(left < known.length - 3, `a long address takes the place of several: ${left} are left`)
  })

  await t.test('are not dropped for slugs that nobody has', async (t) => {
    const metrics = createMetrics()
    const cache = await openTargetCache(db, metrics, NO_VISITS)
    await cache.find('many-0', now, 'strangers')
    const made = Array.from({ length: 20_000 }, (_, n) => `made-up-${n}`)
    for (let at = 0; at < made.length; at += 500) {
      const some = made.slice(at, at + 500)
      await Promise.all(some.map((slug) => cache.find(slug, now, 'strangers')))
    }
    t.equal(cache.fresh('/many-0', now)?.slug, 'many-0')
    const lookups = () =>
      /^gatehouse_links_lookups_total\{source="database"\} (\d+)$/m.exec(metrics.render())?.[1]
    const before = lookups()
    await cache.find('made-up-19999', now, 'strangers')
    t.equal(lookups(), before, 'the newest of these are remembered')
    await cache.find('made-up-0', now, 'strangers')
    t.not(lookups(), before, 'and the oldest are not')
  })

  await t.test('too many that wait are refused at once', async (t) => {
    const held = Promise.withResolvers<readonly unknown[]>()
    let isRunning = false
    function run() {
      isRunning = true
      return held.promise
    }
    const cache = await openTargetCache({ ...db, at: () => ({ run }) }, createMetrics(), NO_VISITS)
    const find = (slug: string) => cache.find(slug, now, 'strangers')
    const first = find('first')
    await until(() => isRunning, 'the first statement')
    const waiting = Array.from({ length: 512 }, (_, n) => find(`slug-${n}`))
    await t.rejects(find('one-more'), { name: 'Unavailable' })
    held.resolve([])
    const found = await Promise.all([first, ...waiting])
    t.same([...new Set(found.map(({ link }) => link))], [undefined])
  })
})
