import { t } from 'tap'
import type { Test } from 'tap'
import { goodForm } from '../helpers/api.ts'
import { onPostgres } from '../helpers/backends.ts'
import { makeLink, refuses, startLinks } from '../helpers/links-setup.ts'
import type { Caller, Link } from '../helpers/links-setup.ts'

const ID = '00000000-0000-4000-8000-000000000000'
const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

type User = { readonly id: string; readonly email: string; readonly role: string }
type Users = { readonly users: readonly User[]; readonly next_cursor: string | null }

await onPostgres(t, 'profile and administration', async (t: Test, backend) => {
  const links = await startLinks(t, backend)
  const ann = await links.user('ann')
  const bob = await links.user('bob')
  const root = await links.user('root', { admin: true })

  await t.test('GET /users/me', async (t) => {
    for (const [caller, role] of [
      [ann, 'user'],
      [root, 'admin'],
    ] as const) {
      const answer = await caller.api<{ created_at: string }>('GET', '/users/me')
      goodForm(t, answer)
      const { created_at, ...profile } = answer.json
      const [display_name] = caller.email.split('@')
      t.same(profile, { id: caller.id, email: caller.email, display_name, role })
      t.match(created_at, INSTANT)
    }
  })

  await t.test('GET /admin/users', async (t) => {
    const answer = await root.api<Users>('GET', '/admin/users')
    t.equal(answer.status, 200)
    goodForm(t, answer)
    t.same(Object.keys(answer.json).toSorted(), ['next_cursor', 'users'])
    const emails = answer.json.users.map(({ email }) => email)
    t.same(
      emails,
      ['ann', 'bob'].map((name) => `${name}@example.com`).concat('operator@localhost', root.email),
    )
    const me = (await root.api('GET', '/users/me')).json
    t.same(answer.json.users.at(-1), me, 'rows are profiles')
    const seen: string[] = []
    let cursor = ''
    for (;;) {
      const { json } = await root.api<Users>('GET', `/admin/users?limit=1${cursor}`)
      seen.push(...json.users.map(({ email }) => email))
      if (json.next_cursor === null) break
      cursor = `&cursor=${json.next_cursor}`
    }
    t.same(seen, emails, 'page by page')
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

  await t.test('refusals: 401, 403, 400, 404', async (t) => {
    for (const [method, path] of [
      ['GET', '/admin/users'],
      ['GET', '/admin/links'],
      ['GET', '/admin/users?limit=x'],
      ['PUT', `/admin/users/${bob.id}/role`],
      ['PUT', '/admin/users/no-id/role'],
      ['PUT', `/admin/users/${ID}/role`],
    ] as const) {
      const what = `${method} ${path}`
      refuses(t, await links.api()(method, path, undefined), 401, 'UNAUTHORIZED', { what })
      refuses(t, await ann.api(method, path, undefined), 403, 'FORBIDDEN', { what })
    }
    for (const query of ['limit=0', 'limit=x', 'cursor=x', 'cursor=']) {
      for (const list of ['users', 'links']) {
        refuses(t, await root.api('GET', `/admin/${list}?${query}`), 400, 'BAD_REQUEST')
      }
    }
    const put = (id: string, body: unknown) => root.api('PUT', `/admin/users/${id}/role`, body)
    refuses(t, await put('no-id', { role: 'nothing' }), 400, 'BAD_REQUEST')
    for (const role of ['', 'Admin', 'owner', 'admin ', 'root', 'a\0', '\ud83d']) {
      refuses(t, await put(bob.id, { role }), 400, 'INVALID_ROLE', { what: JSON.stringify(role) })
      refuses(t, await put(ID, { role }), 400, 'INVALID_ROLE')
    }
    for (const role of [undefined, null, 5, true, ['admin'], {}]) {
      refuses(t, await put(bob.id, { role }), 400, 'BAD_REQUEST', { what: JSON.stringify(role) })
    }
    refuses(t, await put(ID, { role: 'admin' }), 404, 'NOT_FOUND')
    t.match((await bob.api('GET', '/users/me')).json, { role: 'user' }, 'bob is what he was')
  })

  await t.test('PUT /admin/users/{id}/role: at once, for tokens that are there', async (t) => {
    const put = (by: Caller, who: Caller, role: string) =>
      by.api<User>('PUT', `/admin/users/${who.id}/role`, { role })
    const hidden = await makeLink(ann, 'only-of-ann', { visibility: 'secure' })
    const up = await put(root, bob, 'admin')
    t.equal(up.status, 200)
    goodForm(t, up)
    t.same(up.json, (await bob.api('GET', '/users/me')).json, 'the updated user')
    t.equal(up.json.role, 'admin')
    t.equal((await put(root, bob, 'admin')).status, 200, 'again changes nothing')
    t.equal((await bob.api('GET', '/admin/users')).status, 200)
    t.equal((await bob.api('GET', `/links/${hidden.id}`)).status, 200)
    const upper = await bob.api<User>('PUT', `/admin/users/${root.id.toUpperCase()}/role`, {
      role: 'user',
    })
    t.match(upper, { status: 200, json: { id: root.id, role: 'user' } }, 'by the new admin')
    refuses(t, await root.api('GET', '/admin/users'), 403, 'FORBIDDEN')
    refuses(t, await put(root, root, 'admin'), 403, 'FORBIDDEN', {
      what: 'nobody helps themselves',
    })
    t.equal((await put(bob, root, 'admin')).status, 200)
    t.equal((await put(root, bob, 'user')).status, 200)
    refuses(t, await bob.api('GET', '/admin/links'), 403, 'FORBIDDEN')
    refuses(t, await bob.api('GET', `/links/${hidden.id}`), 403, 'FORBIDDEN')
  })
})
