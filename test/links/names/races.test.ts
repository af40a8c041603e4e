import { t, type Test } from 'tap'
import type { Api } from '../../helpers/api.ts'
import { embedded } from '../../helpers/backends.ts'
import { request } from '../../helpers/http.ts'
import { makeLink, openLinks, startLinks, type Caller, type Link } from '../../helpers/links.ts'
import { noFailureIn } from '../../helpers/outages.ts'
import { expectStatus, refuses } from '../../helpers/refusals.ts'
import { extent } from '../../helpers/program.ts'
import { randomOf } from '../../helpers/until.ts'

const WRITERS = 8
const CALLS = extent({ short: 12, long: 60 })
const SLUGS = ['aa', 'bb', 'cc', 'dd', 'ee']
const TAGS = ['red', 'blue', 'green', 'x-1']
/** What a call may be answered when another writer was there first. */
const EXPECTED = new Set([200, 201, 204, 400, 403, 404, 409])

/** Rows that should not be: everything that is counted or copied for lists, compared with what it stands for. */
const WRONG = {
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

const first = await openLinks(t)
const second = await openLinks(t, first.env)
const [ann, bob, cyd] = [await first.user('ann'), await first.user('bob'), await first.user('cyd')]
const root = await first.user('root', { admin: true })
const far = second.api(ann.token)
const { query } = first

function split<A extends { status: number }>(answers: readonly A[], status: number) {
  const good = answers.filter((answer) => answer.status === status)
  return [good, answers.filter((answer) => answer.status !== status)] as const
}

await t.test('of all who want a name at once, one gets it', async (t) => {
  const making = Array.from({ length: 6 }, (_, at) => makeLink(ann, `holder-${at}`))
  const holders = await Promise.all(making)
  for (let round = 0; round < 4; round++) {
    const slug = `wanted-${round}`
    const answers = await Promise.all(
      holders.flatMap(({ id }, at) => {
        const api = at % 2 === 0 ? ann.api : far
        const url = `https://w${at}.test/`
        return [
          api<Link>('POST', '/links', { slug, url, tags: [slug, `${slug}-${at}`] }),
          api<Link>('PUT', `/links/${id}/slug`, { slug }),
          api<Link>('PUT', `/links/${id}`, { url: 'https://x.test/', aliases: [slug] }),
        ]
      }),
    )
    const [refused, [winner, ...others]] = split(answers, 409)
    t.same([others.length, refused.length], [0, answers.length - 1], slug)
    for (const answer of refused) refuses(t, answer, [409, 'SLUG_CONFLICT', 'slug already taken'])
    const { slug: name, aliases } = await ann.read(`/links/${winner?.json.id}`)
    t.match(winner?.json, { slug: name, aliases })
  }
})

await t.test('a co-owner who is removed meanwhile can’t write any more', async (t) => {
  const { id } = await makeLink(ann, 'parted')
  const path = `/links/${id}`
  for (let round = 0; round < 3; round++) {
    await ann.api('POST', `${path}/owners`, { email: bob.email })
    const writes = Array.from({ length: 8 }, (_, n) =>
      bob.api<Link>('PUT', path, { url: 'http://bob/', title: `r${round}-${n}` }),
    )
    await expectStatus(204, far('DELETE', `${path}/owners/${bob.id}`))
    const [written, refused] = split(await Promise.all(writes), 200)
    for (const { json } of written) t.equal(json.owners.length, 2, 'who wrote was an owner then')
    for (const answer of refused) refuses(t, answer, [403, 'FORBIDDEN'])
    const { title } = await ann.read(path)
    const titles = written.map(({ json }) => json.title)
    if (title.startsWith(`r${round}`)) t.ok(titles.includes(title), 'no refused write is seen')
    refuses(t, await bob.api('PUT', path, { url: 'http://bob/' }), [403, 'FORBIDDEN'])
  }
})

await t.test('links that lead to each other are never both made', async (t) => {
  const own = (slug: string) => `${first.base}/${slug}`
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

await t.test('of two admins who demote or disable each other one is left', async (t) => {
  const setRole = (api: Api, { id }: Caller, role: string) =>
    api('PUT', `/admin/users/${id}/role`, { role })
  const disable = (api: Api, { id }: Caller, disabled = true) =>
    api('PUT', `/admin/users/${id}/disabled`, { disabled })
  for (const user of [ann, bob]) await setRole(root.api, user, 'admin')
  await expectStatus(200, setRole(ann.api, root, 'user'))
  for (let round = 0; round < 4; round++) {
    const end = (api: Api, user: Caller) =>
      round % 2 === 0 ? setRole(api, user, 'user') : disable(api, user)
    const answers = await Promise.all([end(ann.api, bob), end(second.api(bob.token), ann)])
    const statuses = answers.map(({ status }) => status)
    t.equal(statuses.filter((status) => status === 200).length, 1, statuses.join(' '))
    const [left, other] = statuses[0] === 200 ? [ann, bob] : [bob, ann]
    await expectStatus(200, setRole(left.api, other, 'admin'))
    await expectStatus(200, disable(left.api, other, false))
  }
  await setRole(ann.api, root, 'admin')
  for (const user of [ann, bob]) await setRole(root.api, user, 'user')
})

// Stops the servers: the last one that uses them.
await t.test('writers of the same links and tags', async (t: Test) => {
  const people = [ann, bob, cyd]
  const tokens = [...people, root, root].map(({ token }) => token)
  const statuses = new Map<number, number>()
  const surprises: string[] = []
  async function writer(number: number) {
    const random = randomOf(number + 1)
    const pick = <T>(values: readonly T[]) => values[random(values.length)] as T
    const server = number % 2 === 0 ? first : second
    for (let n = 0; n < CALLS; n++) {
      const answer = await write(server.api(pick(tokens)), pick)
      statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1)
      if (!EXPECTED.has(answer.status)) surprises.push(`${answer.status} ${answer.text}`)
      // Clicks are written meanwhile, too.
      if (random(3) === 0) await request(`${server.base}/${pick(SLUGS)}`)
    }
  }
  async function write(api: Api, pick: <T>(values: readonly T[]) => T) {
    const slug = pick(SLUGS)
    const { links } = await root.read<{ links: Link[] }>('/admin/links')
    const link = links.find((known) => known.slug === slug)
    const fields = {
      // Some lead to links: those are written one at a time.
      url: pick(['https://one.test/', 'https://two.test/', `${first.base}/${pick(SLUGS)}`]),
      tags: TAGS.filter(() => pick([true, false])).toReversed(),
      visibility: pick(['public', 'private', 'secure']),
    }
    if (link === undefined) return api('POST', '/links', { ...fields, slug })
    const path = `/links/${link.id}`
    const { email, id } = pick(people)
    return pick([
      () => api('PUT', path, fields),
      () => api('PUT', path, fields),
      () => api('DELETE', path),
      () => api('POST', `${path}/owners`, { email }),
      () => api('DELETE', `${path}/owners/${id}`),
      () => api('POST', `${path}/shares`, { email }),
      () => api('DELETE', `${path}/shares/${id}`),
      () => root.api('PUT', `/admin/users/${id}/role`, { role: pick(['user', 'admin']) }),
    ])()
  }
  await Promise.all(Array.from({ length: WRITERS }, (_, number) => writer(number)))
  t.same(surprises, [], 'every call is done or refused')
  for (const status of [200, 201, 204, 404]) t.ok(statuses.has(status), `some were ${status}`)
  for (const [what, text] of Object.entries(WRONG)) t.same(await query(text), [], what)

  // Clicks of the last second are written when the servers stop.
  for (const { server } of [first, second]) await server.stop()
  const deadlocks = 'deadlocks::int from pg_stat_database where datname = current_database()'
  t.same(await query(`select ${deadlocks}`), [{ deadlocks: 0 }], 'no two waited for each other')
  for (const { server } of [first, second]) noFailureIn(t, server)
})

await t.test('16 clients create links, with a token that was never seen', async (t) => {
  const links = await startLinks(t, embedded)
  const { email } = await links.user('ann')
  const api = links.api(await links.token(email))
  const statuses = new Set<number>()
  const unanswered = new Set(Array.from({ length: 16 }, (_, client) => client))
  let made = 0
  async function create(client: number) {
    // Until everybody had an answer: those who come first must not keep the others waiting.
    while (unanswered.size > 0 || made < 100) {
      const slug = `made-${made++}`
      const body = { slug, url: `https://${slug}.test/`, tags: TAGS }
      const { status } = await api('POST', '/links', body)
      // A machine that stands still for seconds is busy: the client asks again.
      if (status === 503) continue
      statuses.add(status)
      unanswered.delete(client)
    }
  }
  await Promise.all([...unanswered].map(create))
  t.same([...statuses], [201])
})
