import { t } from 'tap'
import type { Test } from 'tap'
import { encodeCursor } from '../../kernel/cursor.ts'
import { backends, onPostgres } from '../helpers/backends.ts'
import { insertLinks, makeLink, startLinks, type Caller, type Link } from '../helpers/links.ts'
import { run } from '../helpers/postgres.ts'
import { extent } from '../helpers/program.ts'
import { refuseAll, type Refusal } from '../helpers/refusals.ts'
import { walk, type Page } from './pagination-walk.ts'

const [, postgres] = backends
const FUTURE = '2099-01-31T12:00:00.000Z'
const PAGE = 'https://docs.test/a?b=c'

const links = await startLinks(t, postgres)
const database = links.env['DATABASE_URL'] ?? ''
const ann = await links.user('ann')
const bob = await links.user('bob')
const eve = await links.user('eve', { admin: true })

const tags = ['team', 'docs']
await makeLink(ann, 'aa', { title: 'Handbook', url: PAGE, tags })
await makeLink(ann, 'bb', { title: 'Handbook too', url: PAGE, visibility: 'private' })
const shared = await makeLink(ann, 'cc', { url: PAGE, visibility: 'secure', tags })
await makeLink(bob, 'dd', { title: 'Handbook', tags: ['team'], archived: true })
const both = await makeLink(bob, 'ee', { visibility: 'private', expires_at: FUTURE })
const counted = await makeLink(ann, 'ff', { max_visits: 2 })
await makeLink(ann, 'gg', { expires_at: FUTURE })
await ann.api('POST', `/links/${shared.id}/shares`, { email: bob.email })
await bob.api('POST', `/links/${both.id}/owners`, { email: ann.email })

// As visits and time would have it.
const CLICKS: Readonly<Record<string, readonly [clicks: number, days: number | null]>> = {
  ...{ aa: [3, 1], bb: [3, 9], cc: [0, null], dd: [7, 2], ee: [5, 4], ff: [2, 3], gg: [0, null] },
}
for (const [slug, [clicks, days]] of Object.entries(CLICKS)) {
  const text = `update links.links set clicks = $2, clicked_at = now() - make_interval(days => $3) where slug = $1`
  await run(database, text, [slug, clicks, days])
}
await run(database, `update links.links set expires_at = '2001-01-31' where slug = 'ee'`)
// Writes what searches compare: the last visit does so, too.
await ann.api('PUT', `/links/${counted.id}`, { url: counted.url })

/** The slugs of all pages of a list, which are the same however long its pages are. */
async function found(t: Test, { api }: Caller, query: string): Promise<string> {
  const list = { path: `/links?${query}`, rows: 'links', key: 'slug' } as const
  const { keys } = await walk(api, list, 200)
  for (const limit of [1, 2])
    t.same((await walk(api, list, limit)).keys, keys, `${query}, ${limit}`)
  return keys.join(' ')
}

await t.test('who finds what', async (t) => {
  const all = 'aa bb cc dd ee ff gg'
  const address = `url=${encodeURIComponent(PAGE)}`
  const rows: readonly (readonly [query: string, ann: string, bob: string, admin: string])[] = [
    // The contract's list, and its order by name.
    ['', 'aa bb cc ee ff gg', 'dd ee', all],
    ['sort=slug', 'aa bb cc ee ff gg', 'dd ee', all],
    ['scope=own', 'aa bb cc ee ff gg', 'dd ee', ''],
    ['scope=all', 'aa bb cc dd ee ff gg', 'aa cc dd ee ff gg', all],
    ['q=handbook', 'aa bb', 'dd', 'aa bb dd'],
    ['q=handbook&scope=all', 'aa bb dd', 'aa dd', 'aa bb dd'],
    ['q=%23team+hand', 'aa', 'dd', 'aa dd'],
    ['q=owner:ann&scope=all', 'aa bb cc ee ff gg', 'aa cc ee ff gg', 'aa bb cc ee ff gg'],
    ['q=a', 'aa', '', 'aa'],
    ['tag=Team', 'aa cc', 'dd', 'aa cc dd'],
    ['tag=docs&scope=all', 'aa cc', 'aa cc', 'aa cc'],
    ['tag=none&scope=all', '', '', ''],
    // An address is looked for among all that the caller may see.
    [address, 'aa bb cc', 'aa cc', 'aa bb cc'],
    [`${address}&scope=own`, 'aa bb cc', '', ''],
    [`${address}&q=too`, 'bb', '', 'bb'],
    [`${address}&tag=docs&state=active`, 'aa cc', 'aa cc', 'aa cc'],
    [`owner=${bob.email}`, 'ee', 'dd ee', 'dd ee'],
    [
      `owner=${ann.email.toUpperCase()}&scope=all`,
      'aa bb cc ee ff gg',
      'aa cc ee ff gg',
      'aa bb cc ee ff gg',
    ],
    ['owner=nobody@example.com', '', '', ''],
    ['state=active', 'aa bb cc gg', '', 'aa bb cc gg'],
    ['state=expired', 'ee', 'ee', 'ee'],
    ['state=used_up&scope=all', 'ff', 'ff', 'ff'],
    ['state=archived', '', 'dd', 'dd'],
    ['state=archived&scope=all', 'dd', 'dd', 'dd'],
    ['sort=clicks', 'ee aa bb ff cc gg', 'dd ee', 'dd ee aa bb ff cc gg'],
    ['sort=last_click', 'aa ff ee bb cc gg', 'dd ee', 'aa dd ff ee bb cc gg'],
    ['sort=created', 'gg ff ee cc bb aa', 'ee dd', 'gg ff ee dd cc bb aa'],
    ['sort=clicks&scope=all&q=handbook', 'dd aa bb', 'dd aa', 'dd aa bb'],
    [`sort=last_click&${address}`, 'aa bb cc', 'aa cc', 'aa bb cc'],
  ]
  for (const [query, ...wanted] of rows) {
    const got = [
      await found(t, ann, query),
      await found(t, bob, query),
      await found(t, eve, query),
    ]
    t.same(got, wanted, query)
  }
})

await t.test('what is found is a link as the contract has it', async (t) => {
  const [plain, searched] = await Promise.all(
    ['', '?q=handbook'].map(async (query) => (await ann.api<Page>('GET', `/links${query}`)).json),
  )
  const linkOf = (page: Page = { next_cursor: null, links: [] }): unknown =>
    (page['links'] as Link[]).find(({ slug }) => slug === 'aa')
  t.same(linkOf(searched), linkOf(plain))
})

await t.test('forms of an address', async (t) => {
  const root = await makeLink(ann, 'u-root', { url: 'https://Forms.test' })
  await makeLink(ann, 'u-path', { url: 'HTTPS://FORMS.TEST:443/Path/Größe?q=1#part' })
  await makeLink(ann, 'u-name', { url: 'https://bücher.test/' })
  await makeLink(ann, 'u-place', { url: 'https://forms.test/{1}' })
  const rows: readonly (readonly [string, string])[] = [
    ['https://forms.test', 'u-root'],
    ['https://FORMS.test:443/', 'u-root'],
    ['https://forms.test/#', 'u-root'],
    [' https://forms.test/ ', 'u-root'],
    ['http://forms.test/', ''],
    ['https://forms.test:8443/', ''],
    ['https://forms.test/#part', ''],
    ['https://forms.test/Path/Gr%C3%B6%C3%9Fe?q=1#part', 'u-path'],
    ['https://forms.test/x/../Path/Größe?q=1#part', 'u-path'],
    ['https://forms.test/Path/Größe?q=1', ''],
    ['https://forms.test/path/Größe?q=1#part', ''],
    ['https://forms.test/Path/Größe/?q=1#part', ''],
    ['https://xn--bcher-kva.test', 'u-name'],
    ['https://forms.test/{1}', 'u-place'],
    ['https://forms.test/1', ''],
  ]
  for (const [url, wanted] of rows) {
    t.equal(await found(t, ann, `url=${encodeURIComponent(url)}`), wanted, url)
  }

  await t.test('after changes', async (t) => {
    const at = (url: string): Promise<string> => found(t, ann, `url=${encodeURIComponent(url)}`)
    await ann.api('PUT', `/links/${root.id}`, { url: 'https://moved.test/' })
    t.same([await at('https://forms.test/'), await at('https://moved.test/')], ['', 'u-root'])
    await ann.api('DELETE', `/links/${root.id}`)
    t.equal(await at('https://moved.test/'), '')
    await ann.api('POST', `/links/${root.id}/restore`)
    t.equal(await at('https://moved.test/'), 'u-root')
    const hidden = { url: 'https://moved.test/', visibility: 'private' }
    t.equal(await found(t, bob, `url=${encodeURIComponent(hidden.url)}`), 'u-root')
    await ann.api('PUT', `/links/${root.id}`, hidden)
    t.equal(await found(t, bob, `url=${encodeURIComponent(hidden.url)}`), '')
    await ann.api('POST', `/links/${root.id}/owners`, { email: bob.email })
    t.equal(await found(t, bob, `url=${encodeURIComponent(hidden.url)}`), 'u-root')
  })
})

await t.test('what is refused changes nothing', async (t) => {
  const cursorOf = async (query: string): Promise<string> =>
    (await ann.api<Page>('GET', `/links?limit=1&${query}`)).json.next_cursor ?? ''
  const filters = [
    '',
    'q=handbook',
    'q=%23team',
    'tag=team',
    'state=active',
    `owner=${ann.email}`,
    'scope=all',
  ]
  const lists = [
    ...filters,
    'sort=clicks',
    'sort=created',
    'sort=clicks&q=handbook',
    'scope=all&q=handbook',
  ]
  lists.push(`url=${encodeURIComponent(PAGE)}`)
  const refused: Refusal[] = []
  for (const list of lists) {
    const cursor = await cursorOf(list)
    t.equal((await ann.api('GET', `/links?${list}&cursor=${cursor}`)).status, 200, list)
    const text = 'cursor is not from this list; start again from the first page'
    for (const other of lists.filter((one) => one !== list)) {
      refused.push([`GET /links?${other}&cursor=${cursor}`, 400, 'BAD_REQUEST', text])
    }
  }
  for (const position of [['a'], ['a', 'links', 1.5], ['a\0', 'links'], ['a', 'users']]) {
    refused.push([`GET /links?sort=clicks&cursor=${encodeCursor(position)}`, 400, 'BAD_REQUEST'])
  }
  refused.push(
    [
      'GET /links?sort=name',
      400,
      'BAD_REQUEST',
      /^sort must be slug, created, changed, clicks, last_click$/,
    ],
    ['GET /links?sort=', 400, 'BAD_REQUEST'],
    [
      'GET /links?state=used+up',
      400,
      'BAD_REQUEST',
      /^state must be active, expired, used_up, archived$/,
    ],
    ['GET /links?scope=visible', 400, 'BAD_REQUEST', 'scope must be own or all'],
    ['GET /links?owner=ann', 400, 'BAD_REQUEST', 'owner must be an e-mail address'],
    ['GET /links?owner=%00', 400, 'BAD_REQUEST'],
    [`GET /links?q=${'a'.repeat(201)}`, 400, 'BAD_REQUEST', /^q may have 200 characters/],
    ['GET /links?tag=%00', 400, 'BAD_REQUEST', /^tag may have/],
    ['GET /links?url=forms.test', 400, 'INVALID_URL', /^url must be an http/],
    ['GET /links?url=javascript:alert(1)', 400, 'INVALID_URL'],
    ['GET /links?url=https://a:b@forms.test/', 400, 'INVALID_URL', /user name or password/],
    [`GET /links?url=https://forms.test/${'a'.repeat(2_048)}`, 400, 'INVALID_FIELD_LENGTH'],
    ['GET /links?q=a&q=b', 400, 'BAD_REQUEST', 'q may be given once.'],
    ['GET /links?sort=clicks&limit=0', 400, 'BAD_REQUEST'],
  )
  const headers = { authorization: `Bearer ${ann.token}` }
  const state = async (): Promise<unknown> => (await ann.api('GET', '/links')).json
  await refuseAll(t, { service: 'links', base: `${links.base}/api/v1`, headers, state }, refused)
})

await onPostgres(t, 'sorted links of an owner of thousands', async (t: Test, backend) => {
  const links = await startLinks(t, backend)
  const [owner, other] = [await links.user('owner'), await links.user('other')]
  const slugs = Array.from({ length: 6_000 }, (_, at) => `n-${String(at).padStart(4, '0')}`)
  const visibilities = ['public', 'private', 'secure']
  await insertLinks(
    links,
    backend,
    slugs.map((slug, at) => ({
      slug,
      owners: [at % 10 === 0 ? other.email : owner.email],
      visibility: visibilities[at % 3] ?? '',
    })),
  )
  await backend.query(
    links.env,
    `update links.links set clicks = hashtext(slug) & 1023, clicked_at = now() - make_interval(days => hashtext(slug) & 255),
            created_at = now() - make_interval(days => hashtext(slug) & 511), archived = slug like '%77'`,
  )
  const sorts: (readonly [sort: string, order: string])[] = [
    ['clicks', 'clicks desc'],
    ['created', 'created_at desc'],
    ['last_click', 'clicked_at desc'],
  ]
  for (const [sort, order] of extent({ short: sorts.slice(0, 1), long: sorts })) {
    const found = `o.user_id is not null and l.slug like 'n-00%'`
    for (const [query, condition, limit] of [
      ['scope=own', 'o.user_id is not null', 200],
      ['scope=all', `o.user_id is not null or l.visibility = 'public'`, 200],
      // Found among the first links of the order for short pages, by the index for long ones.
      ['scope=own&q=n-00', found, 50],
      ['scope=own&q=n-00', found, 200],
    ] as const) {
      const rows = await backend.query(
        links.env,
        `select l.slug from links.links l
           left join links.link_owners o on o.slug = l.slug and o.user_id = '${owner.id}'
          where ${condition} order by ${order}, l.slug`,
      )
      const path = `/links?${query}&sort=${sort}`
      const { keys } = await walk(owner.api, { path, rows: 'links', key: 'slug' }, limit)
      t.same(
        keys,
        rows.map(({ slug }) => slug),
        `${path}, ${limit}`,
      )
    }
  }
})
