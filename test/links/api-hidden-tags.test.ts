import { t } from 'tap'
import type { Test } from 'tap'
import type { ApiResponse } from '../helpers/api.ts'
import { onPostgres } from '../helpers/backends.ts'
import { makeLink, refuses, startLinks } from '../helpers/links-setup.ts'
import type { Caller, Link, LinksServer } from '../helpers/links-setup.ts'

type Tags = { readonly tags: readonly { slug: string; link_count: number }[] }

/** As long as the hidden tag's name: a length must tell nothing either. */
const ABSENT = 'absent'
const HIDDEN = 'hidden'

const CURSORS = ['', 'private-1', 'secure-3', 'zzz', '\u{10ffff}'].map((key) =>
  Buffer.from(JSON.stringify([key, 'links'])).toString('base64url'),
)
const QUERIES = ['', '?limit=1', '?limit=0', '?cursor=x', `?limit=1&cursor=${CURSORS[2]}`]
const MORE_QUERIES = [
  ...['?limit=200', '?limit=999', '?limit=x', '?cursor='],
  ...CURSORS.flatMap((cursor) => [`?cursor=${cursor}`, `?limit=1&cursor=${cursor}`]),
]

await onPostgres(t, 'tags that a caller may not see', async (t: Test, backend) => {
  const links = await startLinks(t, backend)
  const ann = await links.user('ann')
  const eve = await links.user('eve')
  const root = await links.user('root', { admin: true })

  await t.test('an invisible tag is like one that does not exist, on every page', async (t) => {
    for (const visibility of ['private', 'secure']) {
      for (const n of [1, 2, 3]) {
        await makeLink(ann, `${visibility}-${n}`, { visibility, tags: [HIDDEN, 'also-hidden'] })
      }
    }
    await likeNone(t, eve, [...QUERIES, ...MORE_QUERIES])
    const { json } = await ann.api<{ links: Link[] }>('GET', `/tags/${HIDDEN}/links`)
    t.equal(json.links.length, 6, 'it does exist')
  })

  await t.test('and again once the only link that made it visible is gone', async (t) => {
    const path = `/tags/${HIDDEN}/links`
    const fields = { visibility: 'private', tags: [HIDDEN] }
    for (const [name, show, hide] of ways(ann, eve)) {
      const link = await makeLink(ann, `shown-by-${name}`, fields)
      await likeNone(t, eve, QUERIES)
      await show(link)
      const page = await eve.api<{ links: Link[] }>('GET', path)
      t.same(
        page.json.links.map(({ slug }) => slug),
        [link.slug],
        `${name}: only that link`,
      )
      const cursor = Buffer.from(JSON.stringify([link.slug, 'links'])).toString('base64url')
      const after = await eve.api('GET', `${path}?cursor=${cursor}`)
      t.same([after.status, after.json], [200, { links: [], next_cursor: null }], 'after the last')
      await hide(link)
      await likeNone(t, eve, QUERIES)
    }
  })

  await t.test('pages skip what is hidden, without a gap that tells of it', async (t) => {
    for (const n of [1, 2, 3, 4, 5, 6, 7]) {
      const visibility = n % 2 === 0 ? 'private' : 'public'
      await makeLink(ann, `mixed-${n}`, { visibility, tags: ['mixed'] })
    }
    const seen: string[] = []
    let cursor: string | null = ''
    while (cursor !== null) {
      const query: string = cursor === '' ? '' : `&cursor=${cursor}`
      const { json }: ApiResponse<{ links: Link[]; next_cursor: string | null }> = await eve.api(
        'GET',
        `/tags/mixed/links?limit=1${query}`,
      )
      t.equal(json.links.length, 1, 'every page is full')
      seen.push(...json.links.map(({ slug }) => slug))
      cursor = json.next_cursor
    }
    t.same(seen, ['mixed-1', 'mixed-3', 'mixed-5', 'mixed-7'])
    const whole = await eve.api<{ next_cursor: null }>('GET', '/tags/mixed/links?limit=4')
    t.equal(whole.json.next_cursor, null, 'nothing is said to follow')
    const all = await root.api<{ links: Link[] }>('GET', '/tags/mixed/links')
    t.equal(all.json.links.length, 7, 'admins see all')
  })

  await t.test('GET /tags never names or counts them', (t) => counts(t, links))
})

/** How a private link of `ann` becomes visible to `eve` and hidden again. */
function ways({ api }: Caller, eve: Caller) {
  const put = (fields: object) => (link: Link) =>
    api('PUT', `/links/${link.id}`, { ...link, ...fields })
  const add = (what: string) => (link: Link) =>
    api('POST', `/links/${link.id}/${what}`, { email: eve.email })
  const end = (what: string) => (link: Link) => api('DELETE', `/links/${link.id}/${what}/${eve.id}`)
  const gone = (link: Link) => api('DELETE', `/links/${link.id}`)
  return [
    ['share', add('shares'), end('shares')],
    ['co-owner', add('owners'), end('owners')],
    ['public', put({ visibility: 'public' }), put({ visibility: 'private' })],
    ['secure', put({ visibility: 'public' }), put({ visibility: 'secure' })],
    ['retag', put({ visibility: 'public' }), put({ visibility: 'public', tags: [] })],
    ['deleted', put({ visibility: 'public' }), gone],
    ['deleted-share', add('shares'), gone],
    ['deleted-owner', add('owners'), gone],
  ] as const
}

/** Both answers are the same bytes with the same headers, whatever page is asked for. */
async function likeNone(t: Test, { api }: Caller, queries: readonly string[]): Promise<void> {
  for (const query of queries) {
    for (const method of ['GET', 'HEAD']) {
      const hidden = await api(method, `/tags/${HIDDEN}/links${query}`)
      const absent = await api(method, `/tags/${ABSENT}/links${query}`)
      t.same(comparable(hidden), comparable(absent), `${method} …/links${query}`)
      if (method === 'HEAD') continue
      const bad = /limit=[0x]|cursor=x?$/.test(query)
      if (bad) refuses(t, hidden, 400, 'BAD_REQUEST')
      else refuses(t, hidden, 404, 'NOT_FOUND')
      t.notOk(hidden.text.includes(HIDDEN), 'nothing of the request comes back')
    }
  }
}

/** All that came back, but what differs between any two answers. */
function comparable({ status, rawHeaders, body }: ApiResponse<unknown>): unknown {
  const headers = rawHeaders.map((text, at) => {
    const name = at % 2 === 1 ? rawHeaders[at - 1]?.toLowerCase() : ''
    return name === 'date' || name === 'x-request-id' ? '(any)' : text
  })
  return { status, headers, body: body.toString('latin1') }
}

async function counts(t: Test, links: LinksServer): Promise<void> {
  const bob = await links.user('bob')
  const cat = await links.user('cat')
  const root = await links.user('boss', { admin: true })
  /** How often each of three tags is counted for bob (owner), cat (anybody) and an admin. */
  async function are(
    expected: Readonly<Record<string, readonly [number, number, number]>>,
    what: string,
  ) {
    const lists = await Promise.all(
      [bob, cat, root].map(
        async ({ api }) => (await api<Tags>('GET', '/tags?limit=200')).json.tags,
      ),
    )
    for (const [tag, wanted] of Object.entries(expected)) {
      const got = lists.map((tags) => tags.find(({ slug }) => slug === tag)?.link_count ?? 0)
      t.same(got, wanted, `${what}: ${tag}`)
    }
    for (const tags of lists) {
      t.notOk(
        tags.find(({ link_count }) => link_count < 1),
        'no tag without a link',
      )
      const slugs = tags.map(({ slug }) => slug)
      t.same(slugs, slugs.toSorted(), 'by slug')
    }
  }
  const link = await makeLink(bob, 'counted', { visibility: 'private', tags: ['q-a', 'q-b'] })
  const path = `/links/${link.id}`
  const put = (fields: object) => bob.api('PUT', path, { url: link.url, ...fields })
  await are({ 'q-a': [1, 0, 1], 'q-b': [1, 0, 1] }, 'private')
  await put({ tags: ['q-b', 'q-c'] })
  await are({ 'q-a': [0, 0, 0], 'q-b': [1, 0, 1], 'q-c': [1, 0, 1] }, 'other tags')
  await put({ tags: ['q-b', 'q-c'], visibility: 'public' })
  await are({ 'q-b': [1, 1, 1], 'q-c': [1, 1, 1] }, 'public')
  const second = await makeLink(cat, 'counted-2', { tags: ['q-b'] })
  await are({ 'q-b': [2, 2, 2], 'q-c': [1, 1, 1] }, 'a second link')
  await put({ tags: ['q-b', 'q-d'], visibility: 'secure' })
  await are({ 'q-b': [2, 1, 2], 'q-c': [0, 0, 0], 'q-d': [1, 0, 1] }, 'secure, other tags')
  await bob.api('POST', `${path}/shares`, { email: cat.email })
  await are({ 'q-b': [2, 2, 2], 'q-d': [1, 1, 1] }, 'shared')
  await bob.api('POST', `${path}/owners`, { email: cat.email })
  await are({ 'q-b': [2, 2, 2], 'q-d': [1, 1, 1] }, 'shared and co-owned counts once')
  await bob.api('DELETE', `${path}/shares/${cat.id}`)
  await are({ 'q-b': [2, 2, 2], 'q-d': [1, 1, 1] }, 'co-owned')
  await bob.api('DELETE', `${path}/owners/${cat.id}`)
  await are({ 'q-b': [2, 1, 2], 'q-d': [1, 0, 1] }, 'a co-owner no more')
  await cat.api('DELETE', `/links/${second.id}`)
  await are({ 'q-b': [1, 0, 1], 'q-d': [1, 0, 1] }, 'the second link is gone')
  await put({ tags: [] })
  await are({ 'q-b': [0, 0, 0], 'q-d': [0, 0, 0] }, 'no tags')
  await put({ tags: ['q-e'] })
  await bob.api('DELETE', path)
  await are({ 'q-e': [0, 0, 0] }, 'deleted')
}
