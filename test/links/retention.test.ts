import { t } from 'tap'
import type { Test } from 'tap'
import { backends, onPostgres } from '../helpers/backends.ts'
import {
  insertLinks,
  pageUser,
  slugsIn,
  startLinks,
  startPages,
  type LinksServer,
} from '../helpers/links.ts'
import { run } from '../helpers/postgres.ts'
import { until } from '../helpers/until.ts'

const [, postgres] = backends

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
async function stored({ env }: LinksServer) {
  const url = env['DATABASE_URL'] ?? ''
  const [clicks = {}] = await run(
    url,
    `select count(distinct day)::int as days, count(*)::int as rows,
            min(day) = (now() at time zone 'UTC')::date - 1095 as "from the first day kept",
            (select sum((referrers ->> 'direct')::int)::int from links.click_sources) as sources,
            (select count(*)::int from links.click_sources
              where day < (now() at time zone 'UTC')::date - 29
                and extract(day from day) <> 1) as "days that are no months"
       from links.clicks`,
  )
  const changes = await run(
    url,
    `select slug, count(c.id)::int as changes
       from links.links l left join links.changes c on c.link_id = l.id
      where slug in ('busy', 'calm', 'lately') group by slug order by slug`,
  )
  return { clicks, changes: changes.map(({ slug, changes: n }) => `${slug} ${n}`) }
}

await onPostgres(t, 'what is old is removed, and sums stay', async (t: Test) => {
  const first = await startPages(t, postgres)
  const ann = await pageUser(first, 'ann')
  const names = [
    'busy',
    'calm',
    'lately',
    'never',
    ...Array.from({ length: 20 }, (_, n) => `m-${n}`),
  ]
  await insertLinks(
    first,
    postgres,
    names.map((slug) => ({ slug, owners: [ann.email] })),
  )
  t.same(await first.server.stop(), { code: 0, signal: null })
  const url = first.env['DATABASE_URL'] ?? ''
  await run(url, CLICKS)
  await run(url, SOURCES)
  await run(url, SUMS)
  await run(url, CHANGES, ['busy', 1_300, 100])
  await run(url, CHANGES, ['calm', 40, 1_000])
  await run(url, CHANGES, ['lately', 80, 89])

  const links = await startLinks(t, postgres, first.env)
  const logged = await until(
    () => links.server.logs().find((line) => line.includes('"pruned"')),
    'retention',
  )
  t.match(JSON.parse(logged), {
    msg: 'pruned',
    clicks: 24 * 11 * 2,
    sources: 24 * 11,
    changes: 1_250,
  })
  t.same(await stored(links), {
    clicks: {
      days: 30,
      rows: 24 * 30 * 2,
      'from the first day kept': true,
      sources: 24 * 30 * 10,
      'days that are no months': 0,
    },
    changes: ['busy 50', 'calm 40', 'lately 80'],
  })

  const root = await pageUser(links, 'root', { admin: true })
  const list = await root.get('/-/all?sort=clicks')
  t.equal(slugsIn(list.text).at(-1), 'never', 'links stay in the order of all their clicks')
  t.match(list.text, />410</)
  const [row = {}] = await run(url, "select id::text from links.links where slug = 'busy'")
  const page = await root.get(`/-/links/${String(row['id'])}`)
  t.match(page.text, /145 people/)
  t.match(page.text, 'title busy 0', 'the newest change')
  t.match(page.text, 'title busy 49', 'and the last one that the page shows')
  t.notMatch(page.text, 'Older changes', 'all that are kept')
})
