import { t } from 'tap'
import type { Test } from 'tap'
import { eachBackend } from '../helpers/backends.ts'
import { makeLink, refuses, startLinks } from '../helpers/links-setup.ts'
import type { Caller } from '../helpers/links-setup.ts'
import { walk } from './pagination-walk.ts'
import type { List, Page } from './pagination-walk.ts'

const ROWS = 10_000
/** Rows whose number ends in this may be deleted while others walk. */
const DELETABLE = 7

/**
 * Links `l-00001` and so on, each with tag `popular` and one of its own, `t-00001`, owned by a user of
 * its own; ann is a co-owner of all. Public, private and secure take turns; eve has a share of every
 * tenth.
 */
const SEED = [
  `insert into links.users (email, display_name, role, created_at)
   select 'u' || lpad(n::text, 5, '0') || '@example.com', 'n', 'user', now() from generate_series(1, ${ROWS}) n`,
  `insert into links.users (email, display_name, role, created_at)
   values ('ann@example.com', 'ann', 'user', now()), ('eve@example.com', 'eve', 'user', now())`,
  `insert into links.links (slug, id, url, title, description, visibility, append_path, created_at, updated_at)
   select 'l-' || lpad(n::text, 5, '0'), ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, 'https://x.test/',
          '', '', (array['public', 'private', 'secure'])[n % 3 + 1], false, now(), now() from generate_series(1, ${ROWS}) n`,
  `insert into links.link_owners (user_id, slug, is_primary)
   select u.id, 'l-' || substr(u.email, 2, 5), true from links.users u where u.email like 'u%'`,
  `insert into links.link_owners (user_id, slug, is_primary)
   select u.id, l.slug, false from links.users u, links.links l where u.email = 'ann@example.com'`,
  `insert into links.link_shares (user_id, slug, shared_by, created_at)
   select u.id, l.slug, 'ann@example.com', now() from links.users u, links.links l
    where u.email = 'eve@example.com' and l.slug like '%0'`,
  `insert into links.link_tags (slug, tag, is_public)
   select slug, tag, visibility = 'public' from links.links, unnest(array['popular', 't' || substr(slug, 2)]) tag`,
  `insert into links.hidden_tags (user_id, tag, slug)
   select m.user_id, t.tag, t.slug
     from (select user_id, slug from links.link_owners union select user_id, slug from links.link_shares) m
     join links.link_tags t on t.slug = m.slug and not t.is_public`,
  `insert into links.tags (tag, links, public_links)
   select tag, count(*), count(*) filter (where is_public) from links.link_tags group by tag`,
]

const numbers = Array.from({ length: ROWS }, (_, n) => n + 1)
const padded = (n: number): string => String(n).padStart(5, '0')

await eachBackend(t, 'walks over 10,000 rows while others write', async (t: Test, backend) => {
  const env = await backend.env(t)
  for (const statement of SEED) await backend.query(env, statement)
  const links = await startLinks(t, backend, env)
  const root = await links.user('root', { admin: true })
  const bob = await links.user('bob')
  const ann = links.api(await links.token('ann@example.com'))
  const eve = links.api(await links.token('eve@example.com'))
  const gone = new Set<number>()
  let made = 0

  /** Makes a link and removes one, near row `at`: on the page that is being read, or the next. */
  async function disturb(at: number): Promise<void> {
    const near = Math.min(ROWS, Math.max(1, at) + ((made * 37) % 300))
    const ahead = near - (near % 10) + DELETABLE
    const slug = `l-${padded(near)}-${made++}`
    await makeLink(bob, slug, { tags: ['popular', slug.replace('l', 't')] })
    if (ahead > ROWS || gone.has(ahead)) return
    gone.add(ahead)
    await root.api('DELETE', `/links/00000000-0000-4000-8000-${String(ahead).padStart(12, '0')}`)
  }
  // The embedded engine syncs each write: there, some pages are enough.
  const every = backend.name === 'embedded' ? 8 : 2
  let page = 0
  const beside = async (last: string): Promise<void> => {
    if (page++ % every === 0) await disturb(Number(/\d{5}/.exec(last)?.[0] ?? 0))
  }
  const seen = (n: number): boolean => n % 3 === 0 || n % 10 === 0

  const links5 = { rows: 'links', key: 'slug' } as const
  const tags: List = { path: '/tags', rows: 'tags', key: 'slug' }
  const popular: List = { path: '/tags/popular/links', ...links5 }
  const walks: readonly [string, Caller['api'], List, (n: number) => string | undefined][] = [
    ['/links of an owner', ann, { path: '/links', ...links5 }, (n) => `l-${padded(n)}`],
    ['/admin/links', root.api, { path: '/admin/links', ...links5 }, (n) => `l-${padded(n)}`],
    ['a tag, admin', root.api, popular, (n) => `l-${padded(n)}`],
    ['a tag, recipient', eve, popular, (n) => (seen(n) ? `l-${padded(n)}` : undefined)],
    ['/tags of an admin', root.api, tags, (n) => `t-${padded(n)}`],
    ['/tags of a recipient', eve, tags, (n) => (seen(n) ? `t-${padded(n)}` : undefined)],
  ]
  for (const [what, api, list, keyOf] of walks) {
    const { keys } = await walk(api, list, 199, beside)
    t.same(keys, [...new Set(keys)].toSorted(), `${what}: in order, nothing twice`)
    const untouched = numbers.filter((n) => n % 10 !== DELETABLE)
    const expected = untouched.map(keyOf).filter((key) => key !== undefined)
    const wanted = new Set(expected)
    t.same(
      keys.filter((key) => wanted.has(key)),
      expected,
      `${what}: each untouched row once`,
    )
    if (list.rows === 'links' && api !== ann && api !== eve) {
      const numbered = keys.filter((key) => key.length === 7)
      t.ok(numbered.length >= ROWS - gone.size, `${what}: nothing lost that was not removed`)
    }
    if (api === eve)
      t.notOk(keys.includes(keyOf(1) ?? 'l-00001'), `${what}: not what is not theirs`)
  }

  const users: List = { path: '/admin/users', rows: 'users', key: 'email' }
  let added = 0
  const { keys } = await walk(root.api, users, 199, async (last) => {
    const near = last.split('@')[0] ?? ''
    if (near !== '' && added++ < 20) await links.user(`${near}-${added}`)
  })
  t.same(keys, [...new Set(keys)].toSorted(), '/admin/users: in order, nobody twice')
  const emails = numbers.map((n) => `u${padded(n)}@example.com`)
  t.same(
    keys.filter((key) => /^u\d{5}@/.test(key)),
    emails,
    '/admin/users: everybody once',
  )
})

await eachBackend(t, 'pages of every list', async (t: Test, backend) => {
  const links = await startLinks(t, backend)
  const root = await links.user('root', { admin: true })
  for (const n of [1, 2, 3, 4, 5, 6]) {
    await makeLink(root, `link-${n}`, { tags: ['shared', `tag-${n}`] })
  }
  await root.api('DELETE', `/links/${(await makeLink(root, 'gone', { tags: ['gone'] })).id}`)
  await makeLink(root, 'link-0')
  const users: List = { path: '/admin/users', rows: 'users', key: 'email' }
  const all: readonly List[] = [
    { path: '/links', rows: 'links', key: 'slug' },
    { path: '/admin/links', rows: 'links', key: 'slug' },
    { path: '/tags/tag-1/links', rows: 'links', key: 'slug' },
    { path: '/tags/shared/links', rows: 'links', key: 'slug' },
    { path: '/tags', rows: 'tags', key: 'slug' },
    users,
  ]

  await t.test('in the order of bytes, with addresses of any length and letters', async (t) => {
    const names = ['語'.repeat(100), '～', '😀', `${'a'.repeat(99)}\\`, 'ä']
    for (const name of names) await links.user(name)
    const { keys } = await walk(root.api, users, 1)
    t.equal(keys.length, names.length + 2)
    t.same(
      keys,
      keys.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))),
    )
  })

  await t.test('next_cursor is null on the last page and on no other', async (t) => {
    for (const list of all) {
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
    for (const { path, rows } of all) {
      const { json } = await root.api<Page>('GET', `${path}?limit=1`)
      if (json.next_cursor !== null) cursors.set(rows, json.next_cursor)
    }
    t.equal(cursors.size, 3)
    for (const { path, rows } of all) {
      const ask = (query: string): ReturnType<Caller['api']> => root.api('GET', `${path}?${query}`)
      for (const limit of [
        '0',
        '00',
        '-1',
        '-0',
        '1.0',
        'x',
        '',
        '1e2',
        '1%00',
        '1,5',
        '%2B1',
        'NaN',
      ]) {
        refuses(t, await ask(`limit=${limit}`), 400, 'BAD_REQUEST', { what: `${path} ${limit}` })
      }
      for (const limit of ['200', '201', '007', '9007199254740993', '9'.repeat(1_000)]) {
        t.equal((await ask(`limit=${limit}`)).status, 200, `${path} by ${limit.slice(0, 20)}`)
      }
      const own = cursors.get(rows) ?? ''
      const others = [...cursors].filter(([name]) => name !== rows).map(([, cursor]) => cursor)
      const broken = [
        own.slice(0, -1),
        own.slice(1),
        `${own}A`,
        `${own}=`,
        `!${own}`,
        `${own}%20`,
        `%20${own}`,
      ]
      const none = [
        '[]',
        '[null]',
        '[1]',
        '["a"]',
        '{}',
        'null',
        '"a"',
        '[["a"]]',
        '',
        '[',
        '["\\ud800"]',
      ]
      const strange = [
        ...none,
        JSON.stringify(['a\0b', rows]),
        JSON.stringify(['x'.repeat(1e4), rows]),
      ]
      const encoded = strange.map((text) => Buffer.from(text).toString('base64url'))
      const bad = ['garbage', '%00', 'null', '0', '%F0', ...others, ...broken, ...encoded]
      for (const cursor of bad) {
        const what = `${path} cursor ${cursor.slice(0, 40)}`
        refuses(t, await ask(`cursor=${cursor}`), 400, 'BAD_REQUEST', { what })
      }
      t.equal((await ask(`cursor=${own}`)).status, 200, `${path}: its own cursor`)
    }
  })
})
