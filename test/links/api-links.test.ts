import { t } from 'tap'
import type { Test } from 'tap'
import { backends } from '../helpers/backends.ts'
import type { Env } from '../helpers/program.ts'
import { makeLink, startLinks } from '../helpers/links.ts'
import type { Link } from '../helpers/links.ts'
import { refuses } from '../helpers/refusals.ts'

const [, postgres] = backends
const ID = '00000000-0000-4000-8000-000000000000'
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

type Page = { readonly links: readonly Link[]; readonly next_cursor: string | null }

/** The tag `poison` can't be written, `counted-out` not counted. */
const TRIGGERS = `
  create function links.fail() returns trigger language plpgsql
   as $$ begin raise exception 'the disk of tags is full'; end $$;
  create trigger fail before insert or update on links.link_tags
   for each row when (new.tag = 'poison') execute function links.fail();
  create trigger fail before insert or update on links.tags
   for each row when (new.tag = 'counted-out') execute function links.fail()`

/** All that is stored of links, but what a visit or a token's use changes. */
const TABLES = [
  'links',
  'names',
  'link_owners',
  'link_shares',
  'link_tags',
  'hidden_tags',
  'tags',
  'changes',
]

const links = await startLinks(t, postgres)
const ann = await links.user('ann')
const bob = await links.user('bob')
const root = await links.user('root', { admin: true })

await t.test('POST /links: 201 with the Link', async (t) => {
  const fields = {
    slug: 'first',
    url: 'https://example.com/a?b=c#d',
    title: 'A title',
    description: 'Two\nlines',
    tags: ['zebra', 'apple'],
  }
  const before = Date.now()
  const answer = await ann.api<Link>('POST', '/links', fields)
  t.equal(answer.status, 201)
  const { id, created_at, updated_at, ...rest } = answer.json
  t.same(rest, {
    ...fields,
    tags: ['apple', 'zebra'],
    owners: [{ id: ann.id, email: ann.email, is_primary: true }],
    visibility: 'public',
    append_path: false,
    expires_at: null,
    max_visits: null,
    archived: false,
    aliases: [],
  })
  t.match(id, UUID)
  t.match(created_at, INSTANT)
  t.equal(updated_at, created_at)
  const at = Date.parse(created_at)
  t.ok(at >= before - 1000 && at <= Date.now() + 1000, 'made now')
  t.same((await ann.api('GET', `/links/${id}`)).json, answer.json, 'GET gives the same')
  const upper = await ann.api('GET', `/links/${id.toUpperCase()}`)
  t.same(upper.json, answer.json, 'an id in capitals is the same id')
})

await t.test('POST /links: what is omitted is empty', async (t) => {
  const answer = await bob.api('POST', '/links', { slug: 'bare', url: 'http://wiki/' })
  t.equal(answer.status, 201)
  t.match(answer.json, { title: '', description: '', tags: [], visibility: 'public' })
  const told = { id: ID, owners: [], created_at: 'now', nonsense: { deep: [1] } }
  const ignored = await bob.api<Link>('POST', '/links', {
    ...told,
    slug: 'told',
    url: 'http://w',
  })
  t.equal(ignored.status, 201, 'fields that are not the writer’s are ignored')
  t.not(ignored.json.id, ID)
  t.match(ignored.json.owners, [{ id: bob.id }])
})

await t.test('POST /links: 409 SLUG_CONFLICT for a slug that anybody has', async (t) => {
  const kept = await makeLink(ann, 'taken', { visibility: 'private' })
  for (const caller of [ann, bob, root]) {
    const answer = await caller.api('POST', '/links', {
      slug: 'taken',
      url: 'https://other.test',
    })
    refuses(t, answer, [409, 'SLUG_CONFLICT', 'slug already taken'])
  }
  t.same((await ann.api('GET', `/links/${kept.id}`)).json, kept, 'the link is as it was')
})

await t.test('GET /links/{id}', async (t) => {
  const link = await makeLink(ann, 'readable')
  const secure = await makeLink(ann, 'locked', { visibility: 'secure' })
  refuses(t, await ann.api('GET', `/links/${ID}`), [404, 'NOT_FOUND'])
  for (const id of ['no-id', '1', link.slug, `${link.id}0`, `%7B${link.id}%7D`]) {
    refuses(t, await ann.api('GET', `/links/${id}`), [400, 'BAD_REQUEST'], id)
  }
  for (const { id } of [link, secure]) {
    refuses(t, await bob.api('GET', `/links/${id}`), [403, 'FORBIDDEN'])
    t.equal((await root.api('GET', `/links/${id}`)).status, 200, 'admins read every link')
  }
  await ann.api('POST', `/links/${secure.id}/shares`, { email: bob.email })
  const shared = await bob.api('GET', `/links/${secure.id}`)
  t.same(shared.json, secure, 'a recipient reads the whole link')
})

await t.test('PUT /links/{id}: 200 with the Link', replaces)
await t.test('DELETE /links/{id}', deletes)

await t.test('GET /links', async (t) => {
  const cat = await links.user('cat')
  const dan = await links.user('dan')
  t.same((await cat.api('GET', '/links')).json, { links: [], next_cursor: null }, 'none yet')
  const own = await makeLink(cat, 'cat-own', { visibility: 'secure', tags: ['x'] })
  await makeLink(dan, 'cat-shared').then(({ id }) =>
    dan.api('POST', `/links/${id}/shares`, { email: cat.email }),
  )
  const { id } = await makeLink(dan, 'cat-co-owned')
  await dan.api('POST', `/links/${id}/owners`, { email: cat.email })
  const answer = await cat.api<Page>('GET', '/links')
  t.same(slugsOf(answer.json), ['cat-co-owned', 'cat-own'], 'own and co-owned ones, by slug')
  t.same(answer.json.links[1], own, 'the whole Link')
  t.equal(answer.json.links[0]?.owners.length, 2)
  const all = (await root.api<Page>('GET', '/links?limit=200')).json
  t.match(slugsOf(all).join(' '), /bare.*cat-co-owned cat-own cat-shared/, 'admins get all')
  t.same((await root.api('GET', '/admin/links?limit=200')).json, all, 'as /admin/links')
})

await t.test('tags that can’t be written', async (t) => {
  const links = await startLinks(t, postgres)
  const { api } = await links.user('ann')
  const kept = await makeLink({ api }, 'kept', { title: 'As it was', tags: ['fine', 'shared'] })
  await postgres.query(links.env, TRIGGERS)
  const stored = await everything(links.env)

  const bad = [['poison'], ['fine', 'poison'], ['counted-out'], ['a', 'counted-out', 'z']]
  for (const tags of bad) {
    const what = tags.join(', ')
    const made = await api('POST', '/links', { slug: 'not-made', url: 'http://x/', tags })
    refuses(t, made, [500, 'TAG_WRITE_FAILED'], `POST with ${what}`)
    t.notMatch(made.text, /disk|exception|trigger|links\./, 'what failed inside is not told')
    const fields = { url: 'http://other/', title: 'Other', visibility: 'private', tags }
    const changed = await api('PUT', `/links/${kept.id}`, fields)
    refuses(t, changed, [500, 'TAG_WRITE_FAILED'], `PUT with ${what}`)
    t.same((await api('GET', `/links/${kept.id}`)).json, kept, 'the link is as it was')
  }
  const many = Array.from({ length: 12 }, (_, n) =>
    api('POST', '/links', { slug: 'not-made', url: `http://${n}/`, tags: ['poison'] }),
  )
  for (const answer of await Promise.all(many)) refuses(t, answer, [500, 'TAG_WRITE_FAILED'])
  const list = await api<{ links: Link[] }>('GET', '/links')
  t.same(list.json.links, [kept], 'no link is there that was refused')
  const tags = await api('GET', '/tags')
  t.same(tags.json, {
    tags: [
      { slug: 'fine', link_count: 1 },
      { slug: 'shared', link_count: 1 },
    ],
    next_cursor: null,
  })
  const logged = links.server.logs().filter((line) => line.includes('"tags not written"'))
  t.equal(logged.length, 2 * bad.length + many.length, 'the log has each one')
  for (const line of logged) t.match(JSON.parse(line), { error: /: the disk of tags is full$/ })
  t.same(await everything(links.env), stored, 'nothing at all is left of them')

  const free = await api('POST', '/links', { slug: 'not-made', url: 'http://x/' })
  t.equal(free.status, 201, 'the slug is free, and good tags can be written')
  await makeLink({ api }, 'good', { tags: ['fine'] })
})

async function replaces(t: Test): Promise<void> {
  const whole = {
    ...{ title: 'Title', description: 'Words', tags: ['one', 'two'] },
    ...{ visibility: 'secure', append_path: true },
  }
  const link = await makeLink(ann, 'changing', whole)
  const path = `/links/${link.id}`

  const answer = await ann.api<Link>('PUT', path, { url: 'https://new.test/' })
  t.equal(answer.status, 200)
  const cleared = { url: 'https://new.test/', title: '', description: '', tags: [] }
  const { updated_at } = answer.json
  t.same(
    answer.json,
    { ...link, ...cleared, updated_at },
    'omitted texts and tags are cleared, visibility and append_path are as they were',
  )
  t.ok(updated_at > link.updated_at, 'updated_at moved on')
  t.same((await ann.api('GET', path)).json, answer.json)

  const again = await ann.api<Link>('PUT', path, { ...link, url: 'https://third.test/' })
  t.same(
    again.json,
    { ...link, url: 'https://third.test/', updated_at: again.json.updated_at },
    'a whole Link can be sent back',
  )
  for (const slug of ['other', 'api', 'NO SLUG', '', 'bare', null, 7, ['x'], 'x'.repeat(3_000)]) {
    const ignored = await ann.api<Link>('PUT', path, { slug, url: 'https://x.test/' })
    t.same([ignored.status, ignored.json.slug], [200, 'changing'], `slug ${slug} is ignored`)
  }
  await ann.api('POST', `/links/${link.id}/owners`, { email: bob.email })
  for (const caller of [bob, root]) {
    const { status } = await caller.api('PUT', path, { url: `https://${caller.id}.test/` })
    t.equal(status, 200, `${caller.email}: co-owners and admins change it`)
  }
  t.equal((await ann.api<Link>('GET', path)).json.owners.length, 2, 'with its owners as they were')

  const eve = await links.user('eve')
  await ann.api('POST', `/links/${link.id}/shares`, { email: eve.email })
  const before = (await ann.api('GET', path)).json
  refuses(
    t,
    await eve.api('PUT', path, { url: 'https://eve.test/' }),
    [403, 'FORBIDDEN'],
    'recipients read only',
  )
  const body = { url: 'https://x.test/' }
  refuses(t, await ann.api('PUT', `/links/${ID}`, body), [404, 'NOT_FOUND'])
  refuses(t, await ann.api('PUT', '/links/no-id', body), [400, 'BAD_REQUEST'])
  for (const url of [undefined, null, 5, '']) {
    const code = url === '' ? 'INVALID_URL' : 'BAD_REQUEST'
    refuses(t, await ann.api('PUT', path, { url, title: 'kept out' }), [400, code])
  }
  t.same((await ann.api('GET', path)).json, before, 'a refusal changes nothing')
  t.comment('the order of refusals: id, existence, right, body')
  refuses(t, await eve.api('PUT', '/links/no-id', 'no json'), [400, 'BAD_REQUEST'])
  refuses(t, await eve.api('PUT', `/links/${ID}`, 'no json'), [404, 'NOT_FOUND'])
  const text = { 'content-type': 'text/plain' }
  refuses(t, await eve.api('PUT', path, 'no json', text), [403, 'FORBIDDEN'])
  refuses(t, await ann.api('PUT', path, 'no json', text), [415, 'UNSUPPORTED_MEDIA_TYPE'])
}

async function deletes(t: Test): Promise<void> {
  const eve = await links.user('mallory')
  for (const [at, caller] of [ann, bob, root].entries()) {
    const link = await makeLink(ann, `going-${at}`, { tags: ['gone'] })
    const path = `/links/${link.id}`
    await ann.api('POST', `${path}/owners`, { email: bob.email })
    await ann.api('POST', `${path}/shares`, { email: eve.email })
    refuses(t, await eve.api('DELETE', path), [403, 'FORBIDDEN'])
    const answer = await caller.api('DELETE', path)
    t.equal(answer.status, 204, `by ${caller.email}`)
    for (const [method, rest] of [
      ['GET', ''],
      ['PUT', ''],
      ['DELETE', ''],
      ['GET', '/owners'],
      ['GET', '/shares'],
    ] as const) {
      refuses(t, await caller.api(method, path + rest), [404, 'NOT_FOUND'])
    }
    refuses(t, await eve.api('GET', path), [404, 'NOT_FOUND'])
    const made = await makeLink(bob, link.slug)
    t.not(made.id, link.id, 'the slug is free again')
    t.same([made.tags, made.owners.length], [[], 1], 'nothing of the old link comes back')
    t.equal((await eve.api('GET', `/links/${made.id}`)).status, 403)
  }
  refuses(t, await ann.api('DELETE', `/links/${ID}`), [404, 'NOT_FOUND'])
  refuses(t, await ann.api('DELETE', '/links/no-id'), [400, 'BAD_REQUEST'])
}

function slugsOf({ links }: Page): readonly string[] {
  return links.map(({ slug }) => slug)
}

async function everything(env: Env): Promise<unknown> {
  const parts = TABLES.map(
    (table) =>
      `(select jsonb_agg(to_jsonb(r) order by to_jsonb(r)::text) from links.${table} r) as ${table}`,
  )
  const [row] = await postgres.query(env, `select ${parts.join(', ')}`)
  return row
}
