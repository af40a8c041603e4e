import { t } from 'tap'
import type { Test } from 'tap'
import { backends } from '../helpers/backends.ts'
import type { Api } from '../helpers/api.ts'
import { insertLinks, makeLink, startLinks } from '../helpers/links.ts'
import { refuseAll } from '../helpers/refusals.ts'
import type { Refusal } from '../helpers/refusals.ts'
import { walk, walksWhileOthersWrite } from './pagination-walk.ts'
import type { List, Page } from './pagination-walk.ts'

const [, postgres] = backends

const USERS: List = { path: '/admin/users', rows: 'users', key: 'email' }
const LISTS: readonly List[] = [
  { path: '/links', rows: 'links', key: 'slug' },
  { path: '/admin/links', rows: 'links', key: 'slug' },
  { path: '/tags/tag-1/links', rows: 'links', key: 'slug' },
  { path: '/tags/shared/links', rows: 'links', key: 'slug' },
  { path: '/tags', rows: 'tags', key: 'slug' },
  USERS,
]
const LIMITS = ['0', '00', '-1', '-0', '1.0', '1.5', 'x', '', '%20', '1e2', '0x10', '+5', '1%00']
const MORE_LIMITS = ['1,5', '%2B1', 'NaN', '٣']

await t.test('walks over many rows while others write', (t) =>
  walksWhileOthersWrite(t, postgres, { rows: 600, limit: 37, every: 2 }),
)

await t.test('pages of every list', async (t: Test) => {
  const links = await startLinks(t, postgres)
  const root = await links.user('root', { admin: true })
  for (const n of [1, 2, 3, 4, 5, 6]) {
    await makeLink(root, `link-${n}`, { tags: ['shared', `tag-${n}`] })
  }
  await root.api('DELETE', `/links/${(await makeLink(root, 'gone', { tags: ['gone'] })).id}`)
  await makeLink(root, 'link-0')

  await t.test('in the order of bytes, with addresses of any length and letters', async (t) => {
    const names = ['語'.repeat(100), '～', '😀', `${'a'.repeat(99)}\\`, 'ä']
    for (const name of names) await links.user(name)
    const { keys } = await walk(root.api, USERS, 1)
    t.equal(keys.length, names.length + 2)
    t.same(
      keys,
      keys.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))),
    )
  })

  await t.test('next_cursor is null on the last page and on no other', async (t) => {
    for (const list of LISTS) {
      const { keys: whole } = await walk(root.api, list, 200)
      for (let limit = 1; limit <= whole.length + 1; limit++) {
        const { keys, sizes } = await walk(root.api, list, limit)
        t.same(keys, whole, `${list.path} by ${limit}`)
        t.equal(sizes.length, Math.ceil(whole.length / limit), `${list.path} by ${limit}: pages`)
      }
    }
  })

  await t.test('limits and cursors that are none', async (t) => {
    const cursors = new Map<string, string>()
    for (const { path, rows } of LISTS) {
      const { json } = await root.api<Page>('GET', `${path}?limit=1`)
      if (json.next_cursor !== null) cursors.set(rows, json.next_cursor)
    }
    t.equal(cursors.size, 3)
    const refused: Refusal[] = []
    for (const { path, rows } of LISTS) {
      const own = cursors.get(rows) ?? ''
      const others = [...cursors].filter(([name]) => name !== rows).map(([, cursor]) => cursor)
      const limits = [...LIMITS, ...MORE_LIMITS].map((limit) => `limit=${encodeURI(limit)}`)
      const wrong = brokenCursors(own, rows, others).map((cursor) => `cursor=${cursor}`)
      // Lists of the same rows read them the same way: some of each are enough.
      const isFirst = LISTS.find((list) => list.rows === rows)?.path === path
      const queries = isFirst
        ? [...limits, ...wrong, 'limit=1&limit=2']
        : ['limit=0', 'limit=x', 'cursor=', `cursor=${others[0]}`]
      refused.push(
        ...queries.map((query): Refusal => [`GET ${path}?${query}`, 400, 'BAD_REQUEST']),
      )
      for (const limit of ['200', '201', '007', '9007199254740993', '9'.repeat(1_000)]) {
        const { status } = await root.api('GET', `${path}?limit=${limit}`)
        t.equal(status, 200, `${path} by ${limit.slice(0, 20)}`)
      }
      t.equal((await root.api('GET', `${path}?cursor=${own}`)).status, 200, `${path}: its own`)
    }
    const state = async (): Promise<unknown> => (await root.api('GET', '/links')).json
    const headers = { authorization: `Bearer ${root.token}` }
    await refuseAll(t, { service: 'links', base: `${links.base}/api/v1`, headers, state }, refused)
  })

  await t.test('50 rows when nothing is said, 200 at most', async (t) => {
    const pat = await links.user('pat')
    const slugs = Array.from({ length: 203 }, (_, n) => `p-${String(n).padStart(3, '0')}`)
    const owners = [pat.email]
    await insertLinks(
      links,
      postgres,
      slugs.map((slug) => ({ slug, owners })),
    )
    t.same(await slugsOf(pat.api, ''), slugs.slice(0, 50))
    for (const limit of ['200', '201', '1000000', '9'.repeat(400)]) {
      t.same(await slugsOf(pat.api, `?limit=${limit}`), slugs.slice(0, 200), limit.slice(0, 9))
    }
    t.same(await slugsOf(pat.api, '?limit=3'), slugs.slice(0, 3))
  })
})

function brokenCursors(own: string, rows: string, others: readonly string[]): readonly string[] {
  const none = ['[]', '[null]', '[1]', '["a"]', '{}', 'null', '"a"', '[["a"]]', '', '[']
  const strange = [
    ...[...none, '["\\ud800"]'],
    ...[JSON.stringify(['a\0b', rows]), JSON.stringify(['x'.repeat(1e4), rows])],
  ]
  return [
    ...['garbage', '!', '%00', 'null', '0', '%F0', 'W10', 'e30', ...others],
    ...[own.slice(0, -1), own.slice(1), `${own}A`, `${own}=`, `!${own}`],
    ...[`${own}%20`, `%20${own}`],
    ...strange.map((text) => Buffer.from(text).toString('base64url')),
  ]
}

async function slugsOf(api: Api, query: string): Promise<readonly string[]> {
  const { json } = await api<{ links: { slug: string }[] }>('GET', `/links${query}`)
  return json.links.map(({ slug }) => slug)
}
