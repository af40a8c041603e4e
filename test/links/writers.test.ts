import { t } from 'tap'
import type { Api } from '../helpers/api.ts'
import { backends } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import { startLinks } from '../helpers/links-setup.ts'
import type { Link } from '../helpers/links-setup.ts'
import { run } from '../helpers/postgres.ts'
import { until } from '../helpers/until.ts'

const WRITERS = 8
const CALLS = 120
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
  'primary owners': `
    select l.slug from links.links l
     where (select count(*) from links.link_owners o where o.slug = l.slug and o.is_primary) <> 1`,
}

t.test('writers of the same links and tags on two servers', async (t) => {
  const [, postgres] = backends
  const first = await startLinks(t, postgres)
  const url = first.env['DATABASE_URL'] ?? ''
  const second = await startLinks(t, postgres, first.env)
  const names = ['ann', 'bob', 'cyd']
  const people = await Promise.all(names.map((name) => first.user(name)))
  const root = await first.user('root', { admin: true })
  const tokens = [...people, root, root].map(({ token }) => token)
  const statuses = new Map<number, number>()
  const surprises: string[] = []

  async function writer(number: number): Promise<void> {
    const server = number % 2 === 0 ? first : second
    const random = randomOf(number + 1)
    const pick = <T>(values: readonly T[]): T => values[random(values.length)] as T
    for (let n = 0; n < CALLS; n++) {
      const api = server.api(pick(tokens))
      const answer = await write(api, pick, server.base)
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
    const email = `${pick(names)}@example.com`
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
  for (const [what, text] of Object.entries(WRONG)) t.same(await run(url, text), [], what)

  // Clicks of the last second are written when the servers stop.
  await Promise.all([first.server.stop(), second.server.stop()])
  const [row] = await until(
    () =>
      run(url, 'select deadlocks::int from pg_stat_database where datname = current_database()'),
    'the statistics of the database',
  )
  t.equal(row?.['deadlocks'], 0, 'no two writers waited for each other')
  const logs = [...first.server.logs(), ...second.server.logs()]
  t.same(
    logs.filter((line) => /deadlock|"level":"error"/.test(line)),
    [],
    'nothing went wrong',
  )
})

/** Numbers below a bound in an order that is the same in each run; who comes first is not. */
function randomOf(seed: number): (below: number) => number {
  let state = seed * 7919
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}
