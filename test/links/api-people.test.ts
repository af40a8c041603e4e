import { t } from 'tap'
import type { ApiResponse } from '../helpers/api.ts'
import { backends } from '../helpers/backends.ts'
import { runCli } from '../helpers/cli.ts'
import { NAVIGATION, makeLink, pageUser, startLinks, startPages } from '../helpers/links.ts'
import type { Caller, Link } from '../helpers/links.ts'
import { run } from '../helpers/postgres.ts'
import { refuseAll, refuses } from '../helpers/refusals.ts'
import type { Refusal } from '../helpers/refusals.ts'

const [, postgres] = backends
const ID = '00000000-0000-4000-8000-000000000000'
const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

type User = { readonly id: string; readonly email: string; readonly role: string }
type Users = { readonly users: readonly User[]; readonly next_cursor: string | null }

const links = await startPages(t, postgres)
const ann = await links.user('ann')
const bob = await links.user('bob')
const cat = await links.user('cat')
const eve = await links.user('eve')
const root = await pageUser(links, 'root', { admin: true })

await t.test('GET /users/me', async (t) => {
  for (const [caller, role] of [
    [ann, 'user'],
    [root, 'admin'],
  ] as const) {
    const answer = await caller.api<{ created_at: string }>('GET', '/users/me')
    const { created_at, ...profile } = answer.json
    const [display_name] = caller.email.split('@')
    t.same(profile, { id: caller.id, email: caller.email, display_name, role, disabled_at: null })
    t.match(created_at, INSTANT)
  }
})

await t.test('GET /admin/users', async (t) => {
  const answer = await root.api<Users>('GET', '/admin/users')
  t.equal(answer.status, 200)
  t.same(Object.keys(answer.json).toSorted(), ['next_cursor', 'users'])
  const emails = answer.json.users.map(({ email }) => email)
  t.same(
    emails,
    ['ann', 'bob', 'cat', 'eve']
      .map((name) => `${name}@example.com`)
      .concat('operator@localhost', root.email),
  )
  const me = (await root.api('GET', '/users/me')).json
  t.same(answer.json.users.at(-1), me, 'rows are profiles')
})

await t.test('GET /admin/links', async (t) => {
  await makeLink(ann, 'of-ann', { visibility: 'secure' })
  await makeLink(bob, 'of-bob', { visibility: 'private' })
  const { status, json } = await root.api<{ links: Link[]; next_cursor: null }>(
    'GET',
    '/admin/links',
  )
  t.equal(status, 200)
  t.same([json.links.map(({ slug }) => slug), json.next_cursor], [['of-ann', 'of-bob'], null])
})

await t.test('PUT /admin/users/{id}/role: at once, for tokens that are there', async (t) => {
  const hidden = await makeLink(ann, 'only-of-ann', { visibility: 'secure' })
  const up = await setRole(root, bob, 'admin')
  t.equal(up.status, 200)
  t.same(up.json, (await bob.api('GET', '/users/me')).json, 'the updated user')
  t.equal(up.json.role, 'admin')
  t.equal((await setRole(root, bob, 'admin')).status, 200, 'again changes nothing')
  t.equal((await bob.api('GET', '/admin/users')).status, 200)
  t.equal((await bob.api('GET', `/links/${hidden.id}`)).status, 200)
  const upper = await bob.api<User>('PUT', `/admin/users/${root.id.toUpperCase()}/role`, {
    role: 'user',
  })
  t.match(upper, { status: 200, json: { id: root.id, role: 'user' } }, 'by the new admin')
  refuses(t, await root.api('GET', '/admin/users'), [403, 'FORBIDDEN'])
  refuses(t, await setRole(root, root, 'admin'), [403, 'FORBIDDEN'], 'nobody helps themselves')
  t.equal((await setRole(bob, root, 'admin')).status, 200)
  t.equal((await setRole(root, bob, 'user')).status, 200)
  refuses(t, await bob.api('GET', '/admin/links'), [403, 'FORBIDDEN'])
  refuses(t, await bob.api('GET', `/links/${hidden.id}`), [403, 'FORBIDDEN'])
})

await t.test('owners', async (t) => {
  const { id } = await makeLink(eve, 'owned', { visibility: 'secure' })
  const path = `/links/${id}/owners`
  const primary = { id: eve.id, email: eve.email, is_primary: true }
  const first = await eve.api('GET', path)
  t.same([first.status, first.json], [200, [primary]], 'a bare array')

  const added = await eve.api('POST', path, { email: cat.email })
  t.same([added.status, added.json], [201, { id: cat.id, email: cat.email, is_primary: false }])
  t.equal((await cat.api('GET', `/links/${id}`)).status, 200, 'a co-owner reads')
  const byCoOwner = await cat.api('POST', path, { email: ` ${bob.email.toUpperCase()}\t` })
  t.same(
    [byCoOwner.status, byCoOwner.json],
    [201, { id: bob.id, email: bob.email, is_primary: false }],
    'a co-owner manages co-owners; an address in capitals is the same address',
  )
  t.equal((await root.api('POST', path, { email: ann.email })).status, 201, 'so do admins')
  const all = await bob.api<{ email: string }[]>('GET', path)
  t.same(
    all.json.map(({ email }) => email),
    [eve.email, ann.email, bob.email, cat.email],
    'the primary one first, then by address',
  )
  t.same((await bob.api<Link>('GET', `/links/${id}`)).json.owners, all.json, 'as in the Link')

  for (const { email } of [eve, bob]) {
    refuses(t, await cat.api('POST', path, { email }), [409, 'DUPLICATE_OWNER'], email)
  }
  for (const { api } of [eve, cat, root]) {
    const answer = await api('DELETE', `${path}/${eve.id}`)
    const error = 'cannot remove primary owner'
    refuses(t, answer, [400, 'PRIMARY_OWNER_PROTECTED', error])
  }
  t.equal((await bob.api('DELETE', `${path}/${cat.id}`)).status, 204, 'by another co-owner')
  const own = await bob.api('DELETE', `${path}/${bob.id}`)
  t.equal(own.status, 204, 'a co-owner may leave')
  for (const { api } of [bob, cat]) {
    refuses(t, await api('GET', `/links/${id}`), [403, 'FORBIDDEN'])
    refuses(t, await api('PUT', `/links/${id}`, { url: 'http://x/' }), [403, 'FORBIDDEN'])
    refuses(t, await api('DELETE', `/links/${id}`), [403, 'FORBIDDEN'])
    refuses(t, await api('POST', path, { email: bob.email }), [403, 'FORBIDDEN'])
    refuses(t, await api('DELETE', `${path}/${ann.id}`), [403, 'FORBIDDEN'])
  }
  t.equal((await root.api('DELETE', `${path}/${ann.id.toUpperCase()}`)).status, 204)
  for (const uid of [ann.id, root.id, ID]) {
    refuses(t, await eve.api('DELETE', `${path}/${uid}`), [404, 'NOT_FOUND'])
  }
  t.same((await eve.api('GET', path)).json, [primary])
})

await t.test('shares', async (t) => {
  const { id } = await makeLink(eve, 'shared', { visibility: 'secure' })
  const path = `/links/${id}/shares`
  t.same((await eve.api('GET', path)).json, [], 'a bare array, empty')
  const made = await eve.api<{ created_at: string }>('POST', path, { email: cat.email })
  t.equal(made.status, 201)
  const { created_at, ...row } = made.json
  t.same(row, { id: cat.id, email: cat.email, shared_by: eve.email })
  t.match(created_at, INSTANT)
  t.same((await eve.api('GET', path)).json, [made.json])

  await eve.api('POST', `/links/${id}/owners`, { email: ann.email })
  const byCoOwner = await ann.api('POST', path, { email: bob.email.toUpperCase() })
  t.match(byCoOwner, { status: 201, json: { id: bob.id, shared_by: ann.email } })
  t.match(await root.api('POST', path, { email: root.email }), { status: 201 })
  t.same(
    (await eve.api<{ email: string }[]>('GET', path)).json.map(({ email }) => email),
    [bob.email, cat.email, root.email],
    'by address',
  )
  refuses(t, await eve.api('POST', path, { email: cat.email }), [409, 'DUPLICATE_SHARE'])

  t.comment('a recipient reads, and no more')
  for (const rest of ['', '/owners', '/shares']) {
    t.equal((await cat.api('GET', `/links/${id}${rest}`)).status, 200, `GET …${rest}`)
  }
  for (const [method, rest, body] of [
    ['PUT', '', { url: 'http://x/' }],
    ['DELETE', '', undefined],
    ['POST', '/owners', { email: cat.email }],
    ['DELETE', `/owners/${ann.id}`, undefined],
    ['POST', '/shares', { email: ann.email }],
    ['DELETE', `/shares/${bob.id}`, undefined],
    ['DELETE', `/shares/${cat.id}`, undefined],
  ] as const) {
    refuses(t, await cat.api(method, `/links/${id}${rest}`, body), [403, 'FORBIDDEN'])
  }
  t.same((await cat.api('GET', '/links')).json, { links: [], next_cursor: null }, 'not their own')

  const ended = await ann.api('DELETE', `${path}/${cat.id.toUpperCase()}`)
  t.equal(ended.status, 204, 'an id in capitals is the same id')
  refuses(t, await cat.api('GET', `/links/${id}`), [403, 'FORBIDDEN'], 'at once')
  for (const uid of [cat.id, eve.id, ID]) {
    refuses(t, await eve.api('DELETE', `${path}/${uid}`), [404, 'NOT_FOUND'])
  }
  t.equal((await eve.api('POST', path, { email: cat.email })).status, 201, 'shared again')
  t.equal((await cat.api('GET', `/links/${id}`)).status, 200)
})

await t.test('refusals of owners and shares', async (t) => {
  const { id } = await makeLink(ann, 'guarded')
  const base = `${links.base}/api/v1`
  const text = { 'content-type': 'text/plain' }
  const state = async (): Promise<unknown> => {
    const paths = [`/links/${id}`, `/links/${id}/shares`]
    return Promise.all(paths.map(async (path) => (await ann.api('GET', path)).json))
  }
  const as = ({ token }: Caller) =>
    ({ service: 'links', base, headers: { authorization: `Bearer ${token}` }, state }) as const
  const unknown = [
    ...['nobody@example.com', '', 'no address', `${bob.email}\0`, '\ud83d@example.com'],
    ...[`${'a'.repeat(300)}@example.com`, bob.id],
  ]
  for (const what of ['owners', 'shares']) {
    const path = `/links/${id}/${what}`
    const call = `POST ${path}`
    await refuseAll(t, as(ann), [
      ...unknown.map((email): Refusal => [{ call, body: { email } }, 404, 'NOT_FOUND']),
      ...[undefined, null, 5, [bob.email]].map((email): Refusal => [
        { call, body: { email } },
        400,
        'BAD_REQUEST',
      ]),
      [{ call, body: 'x', headers: text }, 415, 'UNSUPPORTED_MEDIA_TYPE'],
      ...['no-id', bob.email, '1'].map((uid): Refusal => [
        `DELETE ${path}/${uid}`,
        400,
        'BAD_REQUEST',
      ]),
    ])
    // The order: id, existence, right, body.
    const asked = (of: string): readonly string[] =>
      ['GET', 'POST', `DELETE`].map(
        (method) => `${method} /links/${of}/${what}${method === 'DELETE' ? `/${bob.id}` : ''}`,
      )
    const sent = (line: string) => ({ call: line, body: 'no json', headers: text })
    await refuseAll(t, as(eve), [
      ...asked('no-id').map((line): Refusal => [sent(line), 400, 'BAD_REQUEST']),
      ...asked(ID).map((line): Refusal => [sent(line), 404, 'NOT_FOUND']),
      ...asked(id).map((line): Refusal => [sent(line), 403, 'FORBIDDEN']),
      [`DELETE /links/${ID}/${what}/no-id`, 400, 'BAD_REQUEST'],
    ])
  }
})

await t.test('the last admin stays one, by the API, the pages and the command', async (t) => {
  const command = (email: string, role: string) =>
    runCli(['user', 'role', email, role], { env: links.env })
  const { json } = await root.api<Users>('GET', '/admin/users')
  const operator = json.users.find(({ email }) => email === 'operator@localhost')
  t.equal(operator?.role, 'admin', 'there is an operator, who does not count')

  refuses(t, await setRole(root, root, 'user'), [409, 'LAST_ADMIN'], 'the API')
  const meant = { role: 'user', acknowledge_own: 'true' }
  const path = `/-/admin/users/${root.id}/role`
  const refused = await root.post(path, meant)
  t.match([refused.status, refused.json()], [409, { code: 'LAST_ADMIN' }], 'the page')
  const page = await root.post(path, meant, NAVIGATION)
  t.match(page, { status: 409, text: /<!doctype html>[\s\S]*the last admin/i })
  const failed = await command(root.email, 'user')
  t.match(failed, { code: 1, stdout: '', stderr: /^gatehouse: this is the last admin/ }, 'command')
  t.match((await root.api('GET', '/users/me')).json, { role: 'admin' })

  t.comment('what leaves an admin is carried out')
  t.equal((await setRole(root, root, 'admin')).status, 200, 'nothing is lost')
  t.equal((await setRole(root, bob, 'user')).status, 200, 'who is no admin is not the last one')
  const other = { ...root, id: operator?.id ?? '' }
  t.equal((await setRole(root, other, 'user')).status, 200, 'the operator is not the last one')
  t.equal((await setRole(root, other, 'admin')).status, 200)
  await setRole(root, bob, 'admin')
  t.equal((await setRole(root, root, 'user')).status, 200)
  refuses(t, await setRole(bob, bob, 'user'), [409, 'LAST_ADMIN'])
  t.match(await command(root.email, 'admin'), { code: 0 })
})

await t.test('more than a thousand owners and recipients', async (t) => {
  const { id } = await makeLink(ann, 'crowded', { visibility: 'secure' })
  const url = links.env['DATABASE_URL'] ?? ''
  await run(
    url,
    `with made as (
       insert into links.users (email, display_name, role, created_at)
       select 'u' || n || '@example.com', 'u' || n, 'user', now() from generate_series(1001, 2200) as n
       returning id, email
     ), owners as (
       insert into links.link_owners (slug, user_id, is_primary) select 'crowded', id, false from made
     )
     insert into links.link_shares (slug, user_id, shared_by, created_at)
     select 'crowded', id, 'ann@example.com', now() from made`,
    [],
  )
  for (const [what, count] of [
    ['owners', 1_201],
    ['shares', 1_200],
  ] as const) {
    const path = `/links/${id}/${what}`
    const { json } = await ann.api<{ id: string; email: string }[]>('GET', path)
    t.equal(json.length, count, `all ${what} are listed`)
    const last = json.at(-1)
    t.equal(last?.email, 'u2200@example.com')
    t.equal((await ann.api('DELETE', `${path}/${last?.id}`)).status, 204, 'and the last one ends')
  }
  const [entry] = await run(
    url,
    `select detail from links.changes where action = 'share ended' order by id desc limit 1`,
  )
  t.same(entry, { detail: { share: ['u2200@example.com', null] } })
})

await t.test('an operator alone stays an admin', async (t) => {
  const { env } = await startLinks(t, postgres)
  const run = await runCli(['user', 'role', 'operator@localhost', 'user'], { env })
  t.match(run, { code: 1, stderr: /the last admin/ })
})

function setRole(by: Caller, who: Caller, role: string): Promise<ApiResponse<User>> {
  return by.api<User>('PUT', `/admin/users/${who.id}/role`, { role })
}
