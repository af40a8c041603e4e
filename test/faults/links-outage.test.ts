import { setTimeout as pause } from 'node:timers/promises'
import { t, type Test } from 'tap'
import type { Api, ApiResponse } from '../helpers/api.ts'
import { postgres } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import {
  leadsTo,
  linksServer,
  makeLink,
  startLinks,
  visit,
  type Headers,
  type Link,
} from '../helpers/links.ts'
import { noFailureIn, stallPostgres } from '../helpers/outages.ts'
import { ownPostgres, run } from '../helpers/postgres.ts'
import { refuses } from '../helpers/refusals.ts'
import { startServer } from '../helpers/server.ts'
import { until } from '../helpers/until.ts'
import { allServed, startVisits } from '../helpers/load.ts'

const STRANGER = { host: 'go.example' }
/** Below the deadline of a statement: who is answered within this has not waited for the database. */
const PROMPT_MS = 4_000

/** By then the database is away: a link that expires then does so during the outage. */
const OUTAGE_BEGINS_MS = 10_000
/** Who needs the database waits for the deadline of a statement. */
const PATIENT = { timeoutMs: 20_000 }
/** Visits that are to be there, and cost little. */
const LOAD = { clients: 4, restMs: 100 }

const cluster = await ownPostgres(t)
const outages: Readonly<Record<string, (t: Test) => Promise<() => unknown>>> = {
  async crashes() {
    await cluster.stop('immediate')
    return () => cluster.start()
  },
  hangs: (t) => stallPostgres(t, cluster),
}

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
    await makeLink(ann, 'over', { archived: true })
    await makeLink(ann, 'herald')
    const endsAt = Date.now() + OUTAGE_BEGINS_MS
    await makeLink(ann, 'ending', { expires_at: new Date(endsAt).toISOString() })
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
    const first = startVisits(base, paths, LOAD)
    await until(() => first.total > 20, 'the load to be under way')
    const end = await begin(t)
    const before = first.total
    const names = ['open', 'hidden', 'open', 'Open.', 'open?x=1', 'alias', 'twonames', 'two.names']
    for (const slug of names) {
      const answer = await visit(base, `/${slug}`, { timeoutMs: PROMPT_MS })
      t.equal(answer.status, 302, `/${slug} goes on, without waiting for the database`)
    }
    t.equal(await leadsTo(base, '/over'), 410, 'an ended link needs no database')
    const needing = ['/kept', '/kept+', '/nothing', '/never-seen'].map(async (path) => {
      const { status, headers } = await visit(base, path, PATIENT)
      t.equal(status, 503, `${path} needs the database`)
      t.match(headers, { 'retry-after': /^\d+$/, location: undefined })
    })
    const visitAs = (path: string, headers: Headers) => visit(base, path, { ...PATIENT, headers })
    const [stranger, json] = await Promise.all([
      visitAs('/kept', STRANGER),
      visitAs('/nothing', { accept: 'application/json' }),
      ...needing,
    ])
    t.ok([403, 503].includes(stranger.status), 'a secure link leads no stranger anywhere')
    t.match(json.json(), { code: 'UNAVAILABLE' })
    await until(() => Date.now() > endsAt, 'the expiry')
    t.equal(await leadsTo(base, '/ending'), 410, 'the clock is compared without the database')
    await until(() => first.total > before + 50, 'the load to go on through the outage')
    await first.stop()
    const { text } = await request(`${base}/metrics`)
    t.match(text, /^gatehouse_links_lookups_total\{source="stale"\} [1-9]/m)

    const second = startVisits(base, paths, LOAD)
    await end()
    const leadsOn = async () => (await leadsTo(base, '/kept')) === 'https://kept.test/'
    await until(leadsOn, 'secure links to lead on again')
    t.equal(await leadsTo(base, '/nothing'), 404)
    t.equal(await leadsTo(base, '/never-seen'), 'https://never-seen.test/')
    const body = { url: 'https://moved.test/', visibility: 'public' }
    t.equal((await ann.api('PUT', `/links/${kept.id}`, body)).status, 200)
    t.equal(await leadsTo(base, '/kept', { headers: STRANGER }), 'https://moved.test/')
    await second.stop()
    const loads = [first, second]
    allServed(t, [], loads)
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

const links = await startLinks(t, postgres, { DATABASE_URL: await cluster.createDatabase() })
const root = await links.user('root', { admin: true })

await t.test('the API while the database is away', async (t) => {
  const link = await makeLink(root, 'kept', { tags: ['one'] })

  await cluster.stop('fast')
  for (const [method, path, body] of [
    ['GET', '/links', undefined],
    ['POST', '/links', { slug: 'lost', url: 'http://x/', tags: ['lost'] }],
    ['GET', `/links/${link.id}`, undefined],
    ['PUT', `/links/${link.id}`, { url: 'http://x/' }],
    ['DELETE', `/links/${link.id}`, undefined],
    ['POST', `/links/${link.id}/owners`, { email: root.email }],
    ['GET', '/tags/one/links', undefined],
    ['GET', '/users/me', undefined],
    ['POST', '/tokens', { name: 'lost' }],
    ['PUT', `/admin/users/${root.id}/role`, { role: 'user' }],
    ['GET', '/nothing', undefined],
    ['PATCH', '/links', undefined],
  ] as const) {
    const answer = await root.api(method, path, body)
    refuses(t, answer, [503, 'UNAVAILABLE'], `${method} ${path}`)
    t.match(answer.headers['retry-after'], /^[1-9]\d*$/, 'Retry-After in seconds')
    t.notMatch(answer.text, /ECONN|127\.0\.0\.1|postgres/i, 'nothing of the inside is told')
  }
  const head = await root.api('HEAD', '/links')
  t.same([head.status, head.text], [503, ''])
  t.equal((await links.api()('GET', '/config')).status, 200, 'the configuration needs none')
  refuses(t, await links.api()('GET', '/links'), [401, 'UNAUTHORIZED'], 'no token is no token')

  await cluster.start()
  await until(async () => (await root.api('GET', '/links')).status === 200, 'the API to be back')
  const now = await root.api<{ links: Link[] }>('GET', '/links')
  const made = now.json.links.filter(({ slug }) => slug !== 'kept')
  t.same(made, [], 'nothing was half done')
  t.same((await root.api('GET', `/links/${link.id}`)).json, link)
  t.match((await root.api('GET', '/users/me')).json, { role: 'admin' })
  noFailureIn(t, links.server)
})

await t.test(
  'the database crashes under writers: what was answered is what is there',
  async (t) => {
    const answers = new Map<string, ApiResponse<Link>>()
    let over = false
    async function write(api: Api, writer: number) {
      for (let n = 0; !over; n++) {
        const slug = `w${writer}-${n}`
        const tags = ['all', `t-${n % 5}`]
        const answer = await api<Link>('POST', '/links', { slug, url: 'http://x/', tags })
        answers.set(slug, answer)
        if (answer.status !== 201) await pause(50)
      }
    }
    const writers = [1, 2, 3, 4].map((writer) => write(root.api, writer))
    await until(() => answers.size > 40, 'writers to be under way')
    await cluster.stop('immediate')
    await until(() => [...answers.values()].some(({ status }) => status === 503), 'a refusal')
    await cluster.start()
    const refused = answers.size
    await until(
      () => [...answers.values()].slice(refused).some(({ status }) => status === 201),
      'writes to succeed again',
    )
    over = true
    await Promise.all(writers)

    const stored = new Map<string, Link>()
    let cursor = ''
    for (;;) {
      const { json } = await root.api<{ links: Link[]; next_cursor: string | null }>(
        'GET',
        `/links?limit=200${cursor}`,
      )
      for (const link of json.links) stored.set(link.slug, link)
      if (json.next_cursor === null) break
      cursor = `&cursor=${json.next_cursor}`
    }
    for (const [slug, answer] of answers) {
      const link = stored.get(slug)
      if (answer.status === 201) t.same(link, answer.json, `${slug} is as it was answered`)
      else {
        refuses(t, answer, [503, 'UNAVAILABLE'], slug)
        // Its commit's answer may have been lost; then all of it is there.
        if (link !== undefined)
          t.same([link.owners.length, link.tags.length], [1, 2], `${slug} is whole`)
      }
    }
    const counted = await root.api<{ tags: { slug: string; link_count: number }[] }>(
      'GET',
      '/tags',
    )
    for (const { slug, link_count } of counted.json.tags) {
      const having = [...stored.values()].filter(({ tags }) => tags.includes(slug))
      t.equal(link_count, having.length, `${slug} is counted right`)
    }
    noFailureIn(t, links.server)
  },
)

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
