import { t, type Test } from 'tap'
import { encodeCursor } from '../../../kernel/cursor.ts'
import { postgres } from '../../helpers/backends.ts'
import { makeLink, openLinks, slugsOf, visit, type Caller } from '../../helpers/links.ts'
import { extent } from '../../helpers/program.ts'
import { expectStatus, type Refusal } from '../../helpers/refusals.ts'
import { until } from '../../helpers/until.ts'
import { walk, walksWhileOthersWrite, type List, type Page } from './pagination-walk.ts'

const FUTURE = '2099-01-31T12:00:00.000Z'
const PAGE = 'https://docs.test/a?b=c'
const BAD = [400, 'BAD_REQUEST'] as const

const links = await openLinks(t)
const { query } = links
const ann = await links.user('ann')
const bob = await links.user('bob')
const eve = await links.user('eve', { admin: true })
const state = () => ann.read('/links')

const tags = ['team', 'docs']
await makeLink(ann, 'aa', { title: 'Handbook', url: PAGE, tags })
await makeLink(ann, 'bb', { title: 'Handbook too', url: PAGE, visibility: 'private' })
const shares = [bob.email]
await makeLink(ann, 'cc', { url: PAGE, visibility: 'secure', tags, shares })
await makeLink(bob, 'dd', { title: 'Handbook', tags: ['team'], archived: true })
const both = { visibility: 'private', expires_at: FUTURE, owners: [ann.email] }
await makeLink(bob, 'ee', both)
const counted = await makeLink(ann, 'ff', { max_visits: 2 })
await makeLink(ann, 'gg', { expires_at: FUTURE })

// As visits and time would have it.
const CLICKS: Readonly<Record<string, readonly [clicks: number, days: number | null]>> = {
  aa: [3, 1],
  bb: [3, 9],
  cc: [0, null],
  dd: [7, 2],
  ee: [5, 4],
  ff: [2, 3],
  gg: [0, null],
}
for (const [slug, [clicks, days]] of Object.entries(CLICKS)) {
  const text = `update links.links set clicks = $2, clicked_at = now() - make_interval(days => $3) where slug = $1`
  await query(text, [slug, clicks, days])
}
await query(`update links.links set expires_at = '2001-01-31' where slug = 'ee'`)
// Writes what searches compare: the last visit does so, too.
await ann.api('PUT', `/links/${counted.id}`, { url: counted.url })

/** As visits would have written the keys, after clicks were set. */
const writeClicksKeys = () =>
  query(
    `update links.link_texts t set keys = links.clicks_keys(0, l.clicks) from links.links l where l.slug = t.slug`,
  )

const BY_SLUG = { rows: 'links', key: 'slug' }

/** The slugs of all pages of a list, which are the same however long its pages are. */
async function found(t: Test, { api }: Caller, asked: string) {
  const list = { path: `/links?${asked}`, ...BY_SLUG }
  const { keys } = await walk(api, list, 200)
  t.same((await walk(api, list, 2)).keys, keys, `${asked}, 2`)
  return keys.join(' ')
}

await t.test('who finds what', async (t) => {
  const all = 'aa bb cc dd ee ff gg'
  const address = `url=${encodeURIComponent(PAGE)}`
  for (const [asked, ...wanted] of [
    // The contract's list, and its order by name.
    ['', 'aa bb cc ee ff gg', 'dd ee', all],
    ['scope=own', 'aa bb cc ee ff gg', 'dd ee', ''],
    ['scope=all', 'aa bb cc dd ee ff gg', 'aa cc dd ee ff gg', all],
    ['q=handbook&scope=all', 'aa bb dd', 'aa dd', 'aa bb dd'],
    ['q=%23team+hand', 'aa', 'dd', 'aa dd'],
    ['q=owner:ann&scope=all', 'aa bb cc ee ff gg', 'aa cc ee ff gg', 'aa bb cc ee ff gg'],
    ['tag=Team', 'aa cc', 'dd', 'aa cc dd'],
    ['tag=none&scope=all', '', '', ''],
    // An address is looked for among all that the caller may see.
    [address, 'aa bb cc', 'aa cc', 'aa bb cc'],
    [`${address}&scope=own`, 'aa bb cc', '', ''],
    [`${address}&tag=docs&state=active`, 'aa cc', 'aa cc', 'aa cc'],
    [`owner=${bob.email.toUpperCase()}`, 'ee', 'dd ee', 'dd ee'],
    ['owner=nobody@example.com', '', '', ''],
    ['state=active', 'aa bb cc gg', '', 'aa bb cc gg'],
    ['state=expired', 'ee', 'ee', 'ee'],
    ['state=used_up&scope=all', 'ff', 'ff', 'ff'],
    ['state=archived&scope=all', 'dd', 'dd', 'dd'],
    ['sort=clicks', 'ee aa bb ff cc gg', 'dd ee', 'dd ee aa bb ff cc gg'],
    ['sort=last_click', 'aa ff ee bb cc gg', 'dd ee', 'aa dd ff ee bb cc gg'],
    ['sort=created', 'gg ff ee cc bb aa', 'ee dd', 'gg ff ee dd cc bb aa'],
    ['sort=clicks&scope=all&q=handbook', 'dd aa bb', 'dd aa', 'dd aa bb'],
    [`sort=last_click&${address}`, 'aa bb cc', 'aa cc', 'aa bb cc'],
  ] as const) {
    const got = [ann, bob, eve].map((who) => found(t, who, asked))
    t.same(await Promise.all(got), wanted, asked)
  }
})

await t.test('forms of an address', async (t) => {
  const root = await makeLink(ann, 'u-root', { url: 'https://Forms.test' })
  await makeLink(ann, 'u-path', { url: 'HTTPS://FORMS.TEST:443/Path/Größe?q=1#part' })
  await makeLink(ann, 'u-name', { url: 'https://bücher.test/' })
  const at = (url: string, who = ann) => found(t, who, `url=${encodeURIComponent(url)}`)
  for (const [url, wanted] of [
    [' https://FORMS.test:443/# ', 'u-root'],
    ['http://forms.test/', ''],
    ['https://forms.test/#part', ''],
    ['https://forms.test/x/../Path/Gr%C3%B6%C3%9Fe?q=1#part', 'u-path'],
    ['https://forms.test/path/Größe?q=1#part', ''],
    ['https://forms.test/Path/Größe/?q=1#part', ''],
    ['https://xn--bcher-kva.test', 'u-name'],
  ] as const) {
    t.equal(await at(url), wanted, url)
  }
  const moved = 'https://moved.test/'
  await ann.api('PUT', `/links/${root.id}`, { url: moved })
  t.same(
    [await at('https://forms.test/'), await at(moved), await at(moved, bob)],
    ['', 'u-root', 'u-root'],
  )
  await ann.api('PUT', `/links/${root.id}`, { url: moved, visibility: 'private' })
  t.equal(await at(moved, bob), '')
  await ann.api('DELETE', `/links/${root.id}`)
  t.equal(await at(moved), '')
  await ann.api('POST', `/links/${root.id}/restore`)
  t.equal(await at(moved), 'u-root')
})

const USERS: List = { path: '/admin/users', rows: 'users', key: 'email' }
const LISTS: readonly List[] = [
  { path: '/links', ...BY_SLUG },
  { path: '/admin/links', ...BY_SLUG },
  { path: '/tags/team/links', ...BY_SLUG },
  { path: '/tags', rows: 'tags', key: 'slug' },
  USERS,
]

await t.test('pages of every list', async (t) => {
  for (const name of ['語'.repeat(100), '～', '😀', 'ä']) await links.user(name)
  const { keys: emails } = await walk(eve.api, USERS, 1)
  const bytes = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b))
  t.same(emails, emails.toSorted(bytes), 'in the order of bytes')
  for (const list of LISTS) {
    const { keys: whole } = await walk(eve.api, list, 200)
    for (const limit of [1, whole.length - 1, whole.length]) {
      const { keys, sizes } = await walk(eve.api, list, limit)
      t.same(keys, whole, `${list.path} by ${limit}`)
      const pages = Math.ceil(whole.length / limit)
      t.equal(sizes.length, pages, `${list.path}: next_cursor is null on the last page alone`)
    }
  }
  const pat = await links.user('pat')
  const slugs = Array.from({ length: 203 }, (_, n) => `p-${String(n).padStart(3, '0')}`)
  const owners = [pat.email]
  await links.store(slugs.map((slug) => ({ slug, owners })))
  for (const [limit, size] of [
    ['', 50],
    ['?limit=3', 3],
    ['?limit=007', 7],
    ['?limit=200', 200],
    [`?limit=${'9'.repeat(400)}`, 200],
  ] as const) {
    t.same(await slugsOf(pat, `/links${limit}`), slugs.slice(0, size), `${size} rows`)
  }
})

await t.test('what is no page, order or filter is refused', async (t) => {
  const cursors = new Map<string, string>()
  for (const { path, rows } of LISTS) {
    const json = await eve.read<Page>(`${path}?limit=1`)
    cursors.set(rows, json.next_cursor ?? '')
  }
  const limits = ['-1', '1.0', 'x', '', '1e2', '0x10', '+5', '1%00', '1,5', '%D9%A3']
  const refused: Refusal[] = LISTS.flatMap(({ path, rows }, at) => {
    const own = cursors.get(rows) ?? ''
    const others = [...cursors].filter(([name]) => name !== rows).map(([, cursor]) => cursor)
    const strange = [JSON.stringify(['a\0b', rows]), JSON.stringify(['x'.repeat(1e4), rows])]
    const asked = ['limit=0', 'limit=1&limit=2']
    const broken = ['garbage', ...others, own.slice(0, -1)]
    if (at === 0) {
      // All lists read these by the same code: the others have a part of the cases.
      const none = ['[]', '[1]', '["a"]', '{}', '[["a"]]', '', '["\\ud800"]']
      const texts = [...none, ...strange].map((text) => Buffer.from(text).toString('base64url'))
      // The same position as another text: a space more.
      const spaced = Buffer.from(own, 'base64url').toString().replace(',', ', ')
      broken.push(Buffer.from(spaced).toString('base64url'))
      broken.push('%00', '%F0', `${own}A`, `${own}=`, `!${own}`, ...texts)
      asked.push(...limits.map((limit) => `limit=${limit}`))
    }
    asked.push(...broken.map((cursor) => `cursor=${cursor}`))
    return asked.map((query): Refusal => [`GET ${path}?${query}`, ...BAD])
  })

  const lists = [
    '',
    'q=handbook',
    'tag=team',
    'state=active',
    `owner=${ann.email}`,
    'scope=all',
    'sort=clicks',
    'sort=created',
    'sort=clicks&q=handbook',
    'scope=all&q=handbook',
    `url=${encodeURIComponent(PAGE)}`,
  ]
  const text = 'cursor is not from this list; start again from the first page'
  for (const [n, list] of lists.entries()) {
    const first = await eve.api<Page>('GET', `/links?limit=1&${list}`)
    const cursor = first.json.next_cursor ?? ''
    await expectStatus(200, eve.api('GET', `/links?${list}&cursor=${cursor}`), list)
    const other = lists[(n + 1) % lists.length]
    refused.push([`GET /links?${other}&cursor=${cursor}`, ...BAD, text])
  }
  for (const position of [['a'], ['a', 'links', 1.5], ['a', 'users']]) {
    refused.push([`GET /links?sort=clicks&cursor=${encodeCursor(position)}`, ...BAD])
  }
  await eve.refused(t, state, [
    ...refused,
    ['GET /links?sort=name', ...BAD, 'sort must be slug, created, changed, clicks, last_click'],
    ['GET /links?state=used+up', ...BAD, 'state must be active, expired, used_up, archived'],
    ['GET /links?scope=visible', ...BAD, 'scope must be own or all'],
    ['GET /links?owner=ann', ...BAD, 'owner must be an e-mail address'],
    [`GET /links?q=${'a'.repeat(201)}`, ...BAD, 'q may have 200 characters at most, and no NUL'],
    ['GET /links?tag=%00', ...BAD, 'tag may have 200 characters at most, and no NUL'],
    [
      'GET /links?url=forms.test',
      400,
      'INVALID_URL',
      'url must be an http:// or https:// URL with a host, such as https://example.com/',
    ],
    [
      'GET /links?url=https://a:b@forms.test/',
      400,
      'INVALID_URL',
      'url must have no user name or password in it',
    ],
    [`GET /links?url=https://forms.test/${'a'.repeat(8_192)}`, 400, 'INVALID_FIELD_LENGTH'],
    ['GET /links?q=a&q=b', ...BAD, 'q may be given once.'],
  ])
})

/** The owner of most of these. */
const owner = await links.user('owner')
const other = await links.user('other')
const visibilities = ['public', 'private', 'secure']
await links.store(
  Array.from({ length: 6_000 }, (_, at) => ({
    slug: `n-${String(at).padStart(4, '0')}`,
    owners: [at % 10 === 0 ? other.email : owner.email],
    visibility: visibilities[at % 3] ?? '',
  })),
)

await t.test('sorted links of an owner of thousands', async (t) => {
  await query(
    `update links.links set clicks = hashtext(slug) & 1023, clicked_at = now() - make_interval(days => hashtext(slug) & 255),
            created_at = now() - make_interval(days => hashtext(slug) & 511) where slug like 'n-%'`,
  )
  await writeClicksKeys()
  const sorts: (readonly [sort: string, order: string])[] = [
    ['clicks', 'clicks desc'],
    ['created', 'created_at desc'],
    ['last_click', 'clicked_at desc nulls last'],
  ]
  for (const [sort, order] of extent({ short: sorts.slice(0, 1), long: sorts })) {
    const few = `o.user_id is not null and l.slug like 'n-00%'`
    for (const [asked, condition, limit] of [
      ['scope=own', 'o.user_id is not null', 200],
      ['scope=all', `o.user_id is not null or l.visibility = 'public'`, 200],
      // Found among the first links of the order for short pages, by the index for long ones.
      ['scope=own&q=n-00', few, 50],
      ['scope=own&q=n-00', few, 200],
    ] as const) {
      const rows = await query(
        `select l.slug from links.links l
           left join links.link_owners o on o.slug = l.slug and o.user_id = '${owner.id}'
          where ${condition} order by ${order}, l.slug`,
      )
      const path = `/links?${asked}&sort=${sort}`
      const { keys } = await walk(owner.api, { path, ...BY_SLUG }, limit)
      t.same(
        keys,
        rows.map(({ slug }) => slug),
        `${path}, ${limit}`,
      )
    }
  }
})

await t.test('a text that one link in fifty has, in the order of clicks', async (t) => {
  await query(
    "update links.links set clicks = (abs(hashtext(slug)) % 200) ^ 2 where slug like 'n-%'",
  )
  const some = "slug like 'n-%7' and slug < 'n-1200'"
  await query(`update links.link_texts set text = text || ' needle' where ${some}`)
  // A visit makes each of these numbers full, from which on a search looks the link up in another way.
  const full = { 'n-0007': 100, 'n-0027': 1_000, 'n-0037': 10_000 }
  for (const [slug, clicks] of Object.entries(full)) {
    await query('update links.links set clicks = $1 where slug = $2', [clicks - 1, slug])
  }
  await writeClicksKeys()
  for (const slug of Object.keys(full)) await visit(links.base, `/${slug}`)
  for (const [slug, clicks] of Object.entries(full)) {
    const counted = `select clicks::int from links.links where slug = '${slug}'`
    await until(async () => (await links.value(counted)) === clicks, 'the click')
  }
  const rows = await query(`select slug from links.links where ${some} order by clicks desc, slug`)
  for (const limit of [40, 110]) {
    const path = '/links?scope=own&q=needle&sort=clicks'
    const { keys } = await walk(owner.api, { path, ...BY_SLUG }, limit)
    t.same(
      keys,
      rows.map(({ slug }) => slug),
      `${limit} a page`,
    )
  }
})

await t.test('walks over many rows while others write', (t) =>
  walksWhileOthersWrite(t, postgres, { rows: 150, limit: 37, every: 2 }),
)
