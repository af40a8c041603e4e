import { t } from 'tap'
import type { Test } from 'tap'
import { request } from '../helpers/http.ts'
import { leadsTo, linksServer, makeLink, visit } from '../helpers/links.ts'
import { noFailureIn, stallPostgres } from '../helpers/outages.ts'
import { ownPostgres, run } from '../helpers/postgres.ts'
import type { Cluster } from '../helpers/postgres.ts'
import { startServer } from '../helpers/server.ts'
import { until } from '../helpers/until.ts'
import { startVisits } from '../helpers/load.ts'

const STRANGER = { host: 'go.example' }
/** Below the deadline of a statement: who is answered within this has not waited for the database. */
const PROMPT_MS = 4_000

/** By then the database is away: a link that expires then does so during the outage. */
const OUTAGE_BEGINS_MS = 10_000

type Outage = (t: Test, cluster: Cluster) => Promise<() => unknown>

const outages: Readonly<Record<string, Outage>> = {
  async crashes(_t, cluster) {
    await cluster.stop('immediate')
    return () => cluster.start()
  },
  hangs: (t, cluster) => stallPostgres(t, cluster),
}

const cluster = await ownPostgres(t)

for (const [name, begin] of Object.entries(outages)) {
  await t.test(`the database ${name}`, async (t) => {
    const url = await cluster.createDatabase()
    const env = { DATABASE_URL: url }
    const server = await startServer(t, { services: ['links'], env })
    const links = linksServer(server, env)
    const { base } = links
    const ann = await links.user('ann')
    const slugs = ['open', 'hidden', 'busy-1', 'busy-2', 'busy-3']
    for (const slug of slugs) {
      await makeLink(ann, slug, { visibility: slug === 'hidden' ? 'private' : 'public' })
    }
    await makeLink(ann, 'two-names', { url: 'https://busy-2.test/', aliases: ['alias'] })
    const kept = await makeLink(ann, 'kept', { visibility: 'secure' })
    await makeLink(ann, 'never-seen')
    const endsAt = Date.now() + OUTAGE_BEGINS_MS
    await makeLink(ann, 'ending', { expires_at: new Date(endsAt).toISOString() })
    await makeLink(ann, 'over', { archived: true })
    await makeLink(ann, 'herald')
    // The notice of a new link takes it out of memory, if it comes after the first visit.
    await hearsOfAll(base, url)
    t.equal(await leadsTo(base, '/ending'), 'https://ending.test/')
    t.equal(await leadsTo(base, '/over'), 410)
    for (const slug of slugs) t.equal(await leadsTo(base, `/${slug}`), `https://${slug}.test/`)
    t.equal(await leadsTo(base, '/kept'), 'https://kept.test/', 'the local operator is an admin')
    for (const name of ['alias', 'twonames']) {
      t.equal(await leadsTo(base, `/${name}`), 'https://busy-2.test/', name)
    }
    await forgetsToTrust(base, url)

    const paths = ['/busy-1', '/busy-2', '/busy-3']
    const first = startVisits(base, paths, { clients: 4, restMs: 20 })
    await until(() => first.total > 50, 'the load to be under way')
    const end = await begin(t, cluster)
    const before = first.total
    const names = ['open', 'hidden', 'open', 'Open.', 'open?x=1', 'alias', 'twonames', 'two.names']
    for (const slug of names) {
      const answer = await visit(base, `/${slug}`, { timeoutMs: PROMPT_MS })
      t.equal(answer.status, 302, `/${slug} goes on, without waiting for the database`)
    }
    t.equal(await leadsTo(base, '/over'), 410, 'an ended link needs no database')
    await until(() => Date.now() > endsAt, 'the expiry', 30_000)
    t.equal(await leadsTo(base, '/ending'), 410, 'the clock is compared without the database')
    await until(() => first.total > before + 200, 'the load to go on through the outage', 30_000)
    await first.stop()
    for (const path of ['/kept', '/kept+', '/nothing', '/never-seen']) {
      const answer = await visit(base, path, { timeoutMs: 20_000 })
      t.equal(answer.status, 503, `${path} needs the database`)
      t.match(answer.headers, { 'retry-after': /^\d+$/, location: undefined })
    }
    const stranger = await visit(base, '/kept', { headers: STRANGER, timeoutMs: 20_000 })
    t.ok([403, 503].includes(stranger.status), 'a secure link leads no stranger anywhere')
    const json = await visit(base, '/nothing', {
      headers: { accept: 'application/json' },
      timeoutMs: 20_000,
    })
    t.match(json.json(), { code: 'UNAVAILABLE' })
    const { text } = await request(`${base}/metrics`)
    t.match(text, /^gatehouse_links_lookups_total\{source="stale"\} [1-9]/m)

    const second = startVisits(base, paths, { clients: 4, restMs: 20 })
    await end()
    await until(
      async () => (await leadsTo(base, '/kept')) === 'https://kept.test/',
      'secure links to lead on again',
      30_000,
    )
    t.equal(await leadsTo(base, '/nothing'), 404)
    t.equal(await leadsTo(base, '/never-seen'), 'https://never-seen.test/')
    const body = { url: 'https://moved.test/', visibility: 'public' }
    t.equal((await ann.api('PUT', `/links/${kept.id}`, body)).status, 200)
    t.equal(await leadsTo(base, '/kept', { headers: STRANGER }), 'https://moved.test/')
    await second.stop()
    const loads = [first, second]
    t.same(
      loads.flatMap(({ others }) => others),
      [],
      'every visit of the load was redirected',
    )
    t.ok(loads.every(({ unanswered }) => unanswered === 0))

    t.same(await server.stop(), { code: 0, signal: null })
    const rows = await run(
      url,
      `select '/' || slug as path, sum(c.clicks)::int as clicks
         from links.clicks c join links.links on id = link_id where slug like 'busy%' group by 1`,
    )
    const clicks = new Map(rows.map((row) => [String(row['path']), Number(row['clicks'])]))
    // Each was visited once before, to be in memory.
    for (const path of paths) {
      const made = loads.map(({ redirected }) => redirected.get(path) ?? 0)
      t.equal(clicks.get(path), 1 + Number(made[0]) + Number(made[1]), `clicks of ${path}`)
    }
    noFailureIn(t, server)
  })
}

/** Resolves once the server has had the notices of all changes so far. */
async function hearsOfAll(base: string, url: string) {
  await leadsTo(base, '/herald')
  await run(url, "update links.links set url = 'https://herald.test/?heard' where slug = 'herald'")
  await run(url, "select pg_notify('links_changed', 'herald')")
  await leadsHeraldTo(base, 'https://herald.test/?heard')
}

/**
 * Has the server lose its connections, so that it must ask the database before it trusts what it
 * has in memory: an outage is then more than the seconds for which it would not have asked.
 */
async function forgetsToTrust(base: string, url: string) {
  // Nothing tells of this change.
  await run(url, "update links.links set url = 'https://herald.test/?new' where slug = 'herald'")
  await run(
    url,
    `select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and application_name like 'gatehouse %'`,
  )
  await leadsHeraldTo(base, 'https://herald.test/?new')
}

function leadsHeraldTo(base: string, address: string) {
  const isThere = async () => (await leadsTo(base, '/herald')) === address
  return until(isThere, `/herald to lead to ${address}`)
}
