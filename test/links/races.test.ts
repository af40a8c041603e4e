import { t } from 'tap'
import type { Test } from 'tap'
import type { Api, ApiResponse } from '../helpers/api.ts'
import { backends, onPostgres } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import { makeLink, startLinks } from '../helpers/links.ts'
import type { Caller, Link, LinksServer } from '../helpers/links.ts'
import { noFailureIn } from '../helpers/outages.ts'
import { run } from '../helpers/postgres.ts'
import { refuses } from '../helpers/refusals.ts'
import { until } from '../helpers/until.ts'

type Tags = { readonly tags: readonly { slug: string; link_count: number }[] }

const WRITERS = 8
const CALLS = 30
const SLUGS = ['aa', 'bb', 'cc', 'dd', 'ee']
const TAGS = ['red', 'blue', 'green', 'x-1', 'x-2', 'a']
/** What a call may be answered when another writer was there first. */
const EXPECTED: ReadonlySet<number> = new Set([200, 201, 204, 400, 403, 404, 409])

/** Rows that should not be: everything that is counted or copied for lists, compared with what it stands for. */
const WRONG: Readonly<Record<string, string>> = {
  'counters of tags': `
    select tag from links.tags t
      full join (select tag, count(*) as n, count(*) filter (where is_public) as p from links.link_tags group by tag) c
      using (tag)
     where coalesce(t.links, 0) <> coalesce(c.n, 0) or coalesce(t.public_links, 0) <> coalesce(c.p, 0)`,
  'visibility of tags': `
    select t.slug from links.link_tags t join links.links l using (slug) where t.is_public <> (l.visibility = 'public')`,
  'hidden tags': `
    select user_id, tag, slug
      from links.hidden_tags h
      full join (select m.user_id, t.tag, t.slug
                   from (select user_id, slug from links.link_owners union select user_id, slug from links.link_shares) m
                   join links.link_tags t on t.slug = m.slug and not t.is_public) w
      using (user_id, tag, slug)
     where h.slug is null or w.slug is null`,
  names: `
    select l.slug, n.name
      from links.links l
      full join links.names n on n.link_id = l.id
     where l.id is null or not exists (select from links.names o where o.link_id = l.id and o.name = l.slug)`,
  'primary owners': `
    select l.slug from links.links l
     where (select count(*) from links.link_owners o where o.slug = l.slug and o.is_primary) <> 1`,
}

await t.test('16 clients create links, with a token that was never seen', async (t) => {
  const [embedded] = backends
  const links = await startLinks(t, embedded)
  const ann = await links.user('ann')
  const api = links.api(await links.token(ann.email))
  const statuses = new Set<number>()
  const unanswered = new Set(Array.from({ length: 16 }, (_, client) => client))
  let made = 0
  async function create(client: number): Promise<void> {
    // Until everybody had an answer: those who come first must not keep the others waiting.
    while (unanswered.size > 0 || made < 100) {
      const slug = `made-${made++}`
      const body = { slug, url: `https://${slug}.test/`, tags: TAGS }
      statuses.add((await api('POST', '/links', body)).status)
      unanswered.delete(client)
    }
  }
  await Promise.all([...unanswered].map(create))
  t.same([...statuses], [201])
})

await onPostgres(t, 'calls at one time', async (t: Test, backend) => {
  const links = await startLinks(t, backend)
  const ann = await links.user('ann')
  const bob = await links.user('bob')
  const root = await links.user('root', { admin: true })

  await t.test('PUTs of one link: the last one stands, whole', async (t) => {
    const link = await makeLink(ann, 'written', { tags: ['w-0'] })
    const path = `/links/${link.id}`
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, n) =>
        ann.api<Link>('PUT', path, {
          ...{ url: `http://w${n}/`, title: `w-${n}`, tags: [`w-${n}`, 'w-all'] },
          visibility: n % 2 === 0 ? 'public' : 'private',
        }),
      ),
    )
    t.same(new Set(answers.map(({ status }) => status)), new Set([200]))
    for (const { json } of answers) whole(t, json)
    const now = (await ann.api<Link>('GET', path)).json
    t.ok(
      answers.find(({ json }) => json.title === now.title),
      'it is one of them',
    )
    whole(t, now)
    t.same(await tagsOf(root.api, 'w-'), { [now.title]: 1, 'w-all': 1 }, 'counted once')
    const seen = now.visibility === 'public' ? { [now.title]: 1, 'w-all': 1 } : {}
    t.same(await tagsOf(bob.api, 'w-'), seen, 'as everybody sees it')
  })

  await t.test('PUT, DELETE, owners and shares of one link at once', async (t) => {
    for (let round = 0; round < 4; round++) {
      const link = await makeLink(ann, 'torn', { tags: ['torn'] })
      const path = `/links/${link.id}`
      const calls = [
        ...[1, 2, 3].map(
          (n) => () => ann.api('PUT', path, { url: `http://${n}/`, tags: ['torn'] }),
        ),
        () => ann.api('POST', `${path}/owners`, { email: bob.email }),
        () => ann.api('DELETE', `${path}/owners/${bob.id}`),
        () => root.api('POST', `${path}/shares`, { email: bob.email }),
        () => root.api('DELETE', `${path}/shares/${bob.id}`),
        () => bob.api('PUT', path, { url: 'http://bob/', tags: ['torn'] }),
        () => ann.api('DELETE', path),
        () => root.api('DELETE', path),
      ]
      const turned = [...calls.slice(2 * round), ...calls.slice(0, 2 * round)]
      const answers = await Promise.all(turned.map((call) => call()))
      const statuses = answers.map(({ status }) => status)
      const odd = statuses.filter((status) => ![200, 201, 204, 403, 404].includes(status))
      t.same(odd, [], `each answer is one of some order: ${statuses.join(' ')}`)
      refuses(t, await ann.api('GET', path), [404, 'NOT_FOUND'])
      t.same(await tagsOf(root.api, 'torn'), {}, 'no tag is left')
    }
  })

  await t.test('one owner or share added by many at once is added once', async (t) => {
    const link = await makeLink(ann, 'crowded')
    for (const [what, code] of [
      ['owners', 'DUPLICATE_OWNER'],
      ['shares', 'DUPLICATE_SHARE'],
    ] as const) {
      const path = `/links/${link.id}/${what}`
      const email = bob.email
      const many = (call: () => ReturnType<Api>) => Promise.all(Array.from({ length: 12 }, call))
      const added = await many(() => ann.api('POST', path, { email }))
      const [ok, refused] = split(added, 201)
      t.same([ok.length, refused.length], [1, 11], `POST …/${what}`)
      for (const answer of refused) refuses(t, answer, [409, code])
      const removed = await many(() => ann.api('DELETE', `${path}/${bob.id}`))
      const [gone, none] = split(removed, 204)
      t.same([gone.length, none.length], [1, 11], `DELETE …/${what}/{uid}`)
      for (const answer of none) refuses(t, answer, [404, 'NOT_FOUND'])
    }
  })

  await t.test('a co-owner who is removed meanwhile can’t write any more', async (t) => {
    const link = await makeLink(ann, 'parted')
    const path = `/links/${link.id}`
    for (let round = 0; round < 3; round++) {
      await ann.api('POST', `${path}/owners`, { email: bob.email })
      const writes = Array.from({ length: 8 }, (_, n) => async () => {
        const title = `r${round}-${n}`
        return { title, answer: await bob.api<Link>('PUT', path, { url: 'http://bob/', title }) }
      })
      const removal = ann.api('DELETE', `${path}/owners/${bob.id}`)
      const written = await Promise.all(writes.map((write) => write()))
      t.equal((await removal).status, 204)
      const now = (await ann.api<Link>('GET', path)).json
      for (const { answer } of written) {
        if (answer.status !== 200) refuses(t, answer, [403, 'FORBIDDEN'])
        else t.equal(answer.json.owners.length, 2, 'who wrote was an owner at that moment')
      }
      const last = written.find(({ title }) => title === now.title)
      if (last !== undefined) t.equal(last.answer.status, 200, 'no refused write is to be seen')
      refuses(t, await bob.api('PUT', path, { url: 'http://bob/' }), [403, 'FORBIDDEN'])
    }
  })

  await t.test('links that lead to each other are never both made', async (t) => {
    const own = (slug: string) => `${links.base}/${slug}`
    for (let round = 0; round < 3; round++) {
      const [one, two] = [`loop-${round}-a`, `loop-${round}-b`]
      const answers = await Promise.all([
        ann.api('POST', '/links', { slug: one, url: own(two) }),
        bob.api('POST', '/links', { slug: two, url: own(one) }),
      ])
      const [made, refused] = split(answers, 201)
      t.equal(made.length, 1)
      for (const answer of refused) refuses(t, answer, [400, 'INVALID_URL'])
    }
  })
  noFailureIn(t, links.server)
})

await t.test('on two servers', async (t: Test) => {
  const [, postgres] = backends
  const first = await startLinks(t, postgres)
  const second = await startLinks(t, postgres, first.env)
  const servers = [first, second]
  const names = ['ann', 'bob', 'cyd']
  const people = await Promise.all(names.map((name) => first.user(name)))
  const root = await first.user('root', { admin: true })
  const [ann = root, bob = root] = people

  await t.test('50 creates of one slug: one 201 and forty-nine 409', (t) =>
    oneWins(t, [ann.api, second.api(ann.token)], 'race', root.api),
  )
  await t.test('two admins who demote each other', async (t) => {
    const near = { ...ann, api: first.api(ann.token) }
    const far = { ...bob, api: second.api(bob.token) }
    await setRole(root, ann, 'admin')
    await setRole(root, bob, 'admin')
    t.equal((await setRole(ann, root, 'user')).status, 200)
    for (let round = 0; round < 6; round++) {
      const answers = await Promise.all([
        setRole(near, bob, 'user'),
        setRole(far, ann, 'user'),
        setRole(far, bob, 'user'),
        setRole(near, ann, 'user'),
      ])
      const statuses = answers.map(({ status }) => status)
      const odd = statuses.filter((status) => ![200, 403, 409].includes(status))
      t.same(odd, [], `each answer is one of some order: ${statuses.join(' ')}`)
      const roles = [await roleOf(ann), await roleOf(bob)].toSorted()
      t.same(roles, ['admin', 'user'], `one is left: ${statuses.join(' ')}`)
      const [left, other] = (await roleOf(ann)) === 'admin' ? [ann, bob] : [bob, ann]
      await setRole(left, other, 'admin')
    }
    await setRole(ann, root, 'admin')
    for (const user of [ann, bob]) await setRole(root, user, 'user')
  })
  await t.test('two admins who disable each other', async (t) => {
    await setRole(root, ann, 'admin')
    await setRole(root, bob, 'admin')
    t.equal((await setRole(ann, root, 'user')).status, 200)
    const disable = (by: Api, { id }: Caller, disabled = true) =>
      by('PUT', `/admin/users/${id}/disabled`, { disabled })
    for (let round = 0; round < 6; round++) {
      const answers = await Promise.all([
        disable(first.api(ann.token), bob),
        disable(second.api(bob.token), ann),
      ])
      const statuses = answers.map(({ status }) => status)
      t.equal(statuses.filter((status) => status === 200).length, 1, statuses.join(' '))
      const [left, other] = statuses[0] === 200 ? [ann, bob] : [bob, ann]
      t.equal((await disable(left.api, other, false)).status, 200, 'one is left')
    }
    await setRole(ann, root, 'admin')
    for (const user of [ann, bob]) await setRole(root, user, 'user')
  })
  await t.test('writers of the same links and tags', (t) => writersOf(t, servers, people, root))

  // Clicks of the last second are written when the servers stop.
  await Promise.all(servers.map(({ server }) => server.stop()))
  const [row] = await until(
    () =>
      run(
        first.env['DATABASE_URL'] ?? '',
        'select deadlocks::int from pg_stat_database where datname = current_database()',
      ),
    'the statistics of the database',
  )
  t.equal(row?.['deadlocks'], 0, 'no two writers waited for each other')
  for (const { server } of servers) noFailureIn(t, server)
})

async function writersOf(
  t: Test,
  servers: readonly LinksServer[],
  people: readonly Caller[],
  root: Caller,
): Promise<void> {
  const tokens = [...people, root, root].map(({ token }) => token)
  const statuses = new Map<number, number>()
  const surprises: string[] = []

  async function writer(number: number): Promise<void> {
    const random = randomOf(number + 1)
    const pick = <T>(values: readonly T[]): T => values[random(values.length)] as T
    const server = servers[number % servers.length] ?? pick(servers)
    for (let n = 0; n < CALLS; n++) {
      const answer = await write(server.api(pick(tokens)), pick, server.base)
      statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1)
      if (!EXPECTED.has(answer.status)) surprises.push(`${answer.status} ${answer.text}`)
      // Clicks are written meanwhile, too.
      if (random(3) === 0) await request(`${server.base}/${pick(SLUGS)}`)
    }
  }

  async function write(api: Api, pick: <T>(values: readonly T[]) => T, base: string) {
    const slug = pick(SLUGS)
    const link = (await root.api<{ links: Link[] }>('GET', '/admin/links')).json.links.find(
      (known) => known.slug === slug,
    )
    const fields = {
      // Some lead to links: those are written one at a time.
      url: pick(['https://one.test/', 'https://two.test/', `${base}/${pick(SLUGS)}`]),
      tags: TAGS.filter(() => pick([true, false])).toReversed(),
      visibility: pick(['public', 'private', 'secure']),
    }
    if (link === undefined) return api('POST', '/links', { ...fields, slug })
    const path = `/links/${link.id}`
    const { email } = pick(people)
    const user = pick(people).id
    return pick([
      () => api('PUT', path, fields),
      () => api('PUT', path, fields),
      () => api('DELETE', path),
      () => api('POST', `${path}/owners`, { email }),
      () => api('DELETE', `${path}/owners/${user}`),
      () => api('POST', `${path}/shares`, { email }),
      () => api('DELETE', `${path}/shares/${user}`),
      () => root.api('PUT', `/admin/users/${user}/role`, { role: pick(['user', 'admin']) }),
    ])()
  }

  await Promise.all(Array.from({ length: WRITERS }, (_, number) => writer(number)))
  t.comment([...statuses].toSorted(([a], [b]) => a - b).join(' '))
  t.same(surprises, [], 'every call is done or refused')
  for (const status of [200, 201, 204, 404]) t.ok(statuses.has(status), `some were ${status}`)
  for (const [what, text] of Object.entries(WRONG)) {
    t.same(await run(servers[0]?.env['DATABASE_URL'] ?? '', text), [], what)
  }
}

async function oneWins(t: Test, apis: readonly Api[], slug: string, admin: Api): Promise<void> {
  const answers = await Promise.all(
    Array.from({ length: 50 }, async (_, n) => {
      const api = apis[n % apis.length] ?? admin
      return api<Link>('POST', '/links', {
        slug,
        url: `http://w${n}/`,
        tags: [slug, `${slug}-${n}`],
      })
    }),
  )
  const [made, refused] = split(answers, 201)
  t.same([made.length, refused.length], [1, 49])
  const [one, ...others] = refused
  if (one !== undefined) refuses(t, one, [409, 'SLUG_CONFLICT', 'slug already taken'])
  t.same(new Set(others.map(({ text }) => text)), new Set([one?.text]), 'all the same')
  const [winner] = made
  const now = await admin<Link>('GET', `/links/${winner?.json.id}`)
  t.same(now.json, winner?.json, 'the one that was told is the one that is there')
  const tags = Object.fromEntries((winner?.json.tags ?? []).map((tag) => [tag, 1]))
  t.same(await tagsOf(admin, slug), tags, 'and nothing of the others')
}

/** A link all of whose fields come from one and the same PUT. */
function whole(t: Test, { url, title, tags, visibility }: Link): void {
  const n = title.slice(2)
  const wanted = { url: `http://w${n}/`, tags: [`w-${n}`, 'w-all'].toSorted() }
  t.same({ url, tags }, wanted, title)
  t.equal(visibility, Number(n) % 2 === 0 ? 'public' : 'private')
}

function split<A extends { readonly status: number }>(answers: readonly A[], status: number) {
  const good = answers.filter((answer) => answer.status === status)
  return [good, answers.filter((answer) => answer.status !== status)] as const
}

/** The counted tags that begin so. */
async function tagsOf(api: Api, prefix: string): Promise<Readonly<Record<string, number>>> {
  const { json } = await api<Tags>('GET', '/tags?limit=200')
  const rows = json.tags.filter(({ slug }) => slug.startsWith(prefix))
  return Object.fromEntries(rows.map(({ slug, link_count }) => [slug, link_count]))
}

function setRole(by: Caller, who: Caller, role: string): Promise<ApiResponse<unknown>> {
  return by.api('PUT', `/admin/users/${who.id}/role`, { role })
}

async function roleOf({ api }: Caller): Promise<string> {
  return (await api<{ role: string }>('GET', '/users/me')).json.role
}

/** Numbers below a bound in an order that is the same in each run; who comes first is not. */
function randomOf(seed: number): (below: number) => number {
  let state = seed * 7919
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}
