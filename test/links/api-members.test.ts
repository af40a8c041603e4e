import { t } from 'tap'
import type { Test } from 'tap'
import { goodForm } from '../helpers/api.ts'
import { backends, onPostgres } from '../helpers/backends.ts'
import { makeLink, refuses, startLinks } from '../helpers/links-setup.ts'
import type { Caller, Link, LinksServer } from '../helpers/links-setup.ts'
import { run } from '../helpers/postgres.ts'

const ID = '00000000-0000-4000-8000-000000000000'
const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

type People = Readonly<Record<'ann' | 'bob' | 'cat' | 'eve' | 'root', Caller>>

await onPostgres(t, 'owners and shares', async (t: Test, backend) => {
  const links = await startLinks(t, backend)
  const people: People = {
    ann: await links.user('ann'),
    bob: await links.user('bob'),
    cat: await links.user('cat'),
    eve: await links.user('eve'),
    root: await links.user('root', { admin: true }),
  }
  await t.test('owners', (t) => owners(t, people))
  await t.test('shares', (t) => shares(t, people))
  await t.test('refusals of both', (t) => refusals(t, links, people))
})

await t.test('more than a thousand owners and recipients', async (t) => {
  const links = await startLinks(t, backends[1])
  const ann = await links.user('ann')
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
  const [entry] = await run(url, `select detail from links.changes where action = 'share ended'`)
  t.same(entry, { detail: { share: ['u2200@example.com', null] } })
})

async function owners(t: Test, { ann, bob, cat, eve, root }: People): Promise<void> {
  const { id } = await makeLink(eve, 'owned', { visibility: 'secure' })
  const path = `/links/${id}/owners`
  const primary = { id: eve.id, email: eve.email, is_primary: true }
  const first = await eve.api('GET', path)
  t.same([first.status, first.json], [200, [primary]], 'a bare array')
  goodForm(t, first)

  const added = await eve.api('POST', path, { email: cat.email })
  t.same([added.status, added.json], [201, { id: cat.id, email: cat.email, is_primary: false }])
  goodForm(t, added)
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
    refuses(t, await cat.api('POST', path, { email }), 409, 'DUPLICATE_OWNER', { what: email })
  }
  for (const { api } of [eve, cat, root]) {
    const answer = await api('DELETE', `${path}/${eve.id}`)
    const error = 'cannot remove primary owner'
    refuses(t, answer, 400, 'PRIMARY_OWNER_PROTECTED', { error })
  }
  t.equal((await bob.api('DELETE', `${path}/${cat.id}`)).status, 204, 'by another co-owner')
  const own = await bob.api('DELETE', `${path}/${bob.id}`)
  t.equal(own.status, 204, 'a co-owner may leave')
  goodForm(t, own)
  for (const { api } of [bob, cat]) {
    refuses(t, await api('GET', `/links/${id}`), 403, 'FORBIDDEN')
    refuses(t, await api('PUT', `/links/${id}`, { url: 'http://x/' }), 403, 'FORBIDDEN')
    refuses(t, await api('DELETE', `/links/${id}`), 403, 'FORBIDDEN')
    refuses(t, await api('POST', path, { email: bob.email }), 403, 'FORBIDDEN')
    refuses(t, await api('DELETE', `${path}/${ann.id}`), 403, 'FORBIDDEN')
  }
  t.equal((await root.api('DELETE', `${path}/${ann.id.toUpperCase()}`)).status, 204)
  for (const uid of [ann.id, root.id, ID]) {
    refuses(t, await eve.api('DELETE', `${path}/${uid}`), 404, 'NOT_FOUND')
  }
  t.same((await eve.api('GET', path)).json, [primary])
}

async function shares(t: Test, { ann, bob, cat, eve, root }: People): Promise<void> {
  const { id } = await makeLink(eve, 'shared', { visibility: 'secure' })
  const path = `/links/${id}/shares`
  t.same((await eve.api('GET', path)).json, [], 'a bare array, empty')
  const made = await eve.api<{ created_at: string }>('POST', path, { email: cat.email })
  goodForm(t, made)
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
  refuses(t, await eve.api('POST', path, { email: cat.email }), 409, 'DUPLICATE_SHARE')

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
    refuses(t, await cat.api(method, `/links/${id}${rest}`, body), 403, 'FORBIDDEN')
  }
  t.same((await cat.api('GET', '/links')).json, { links: [], next_cursor: null }, 'not their own')

  const ended = await ann.api('DELETE', `${path}/${cat.id.toUpperCase()}`)
  t.equal(ended.status, 204, 'an id in capitals is the same id')
  goodForm(t, ended)
  refuses(t, await cat.api('GET', `/links/${id}`), 403, 'FORBIDDEN', { what: 'at once' })
  for (const uid of [cat.id, eve.id, ID]) {
    refuses(t, await eve.api('DELETE', `${path}/${uid}`), 404, 'NOT_FOUND')
  }
  t.equal((await eve.api('POST', path, { email: cat.email })).status, 201, 'shared again')
  t.equal((await cat.api('GET', `/links/${id}`)).status, 200)
}

async function refusals(t: Test, links: LinksServer, { ann, bob, eve }: People): Promise<void> {
  const { id } = await makeLink(ann, 'of-ann')
  const text = { 'content-type': 'text/plain' }
  for (const what of ['owners', 'shares']) {
    const path = `/links/${id}/${what}`
    for (const [email, status, code] of [
      ['nobody@example.com', 404, 'NOT_FOUND'],
      ['', 404, 'NOT_FOUND'],
      ['no address', 404, 'NOT_FOUND'],
      [`${bob.email}\0`, 404, 'NOT_FOUND'],
      ['\ud83d@example.com', 404, 'NOT_FOUND'],
      [`${'a'.repeat(300)}@example.com`, 404, 'NOT_FOUND'],
      [bob.id, 404, 'NOT_FOUND'],
      [undefined, 400, 'BAD_REQUEST'],
      [null, 400, 'BAD_REQUEST'],
      [5, 400, 'BAD_REQUEST'],
      [[bob.email], 400, 'BAD_REQUEST'],
    ] as const) {
      const asked = `${what}: ${JSON.stringify(email)?.slice(0, 30)}`
      refuses(t, await ann.api('POST', path, { email }), status, code, { what: asked })
    }
    t.comment('the order: id, existence, right, body')
    for (const [method, rest] of [
      ['GET', ''],
      ['POST', ''],
      ['DELETE', `/${bob.id}`],
    ] as const) {
      const body = method === 'POST' ? 'no json' : undefined
      const asked = `${method} …/${what}${rest === '' ? '' : '/{uid}'}`
      const call = async (of: string) => eve.api(method, `/links/${of}/${what}${rest}`, body, text)
      refuses(t, await call('no-id'), 400, 'BAD_REQUEST', { what: asked })
      refuses(t, await call(ID), 404, 'NOT_FOUND', { what: asked })
      refuses(t, await call(id), 403, 'FORBIDDEN', { what: asked })
    }
    refuses(t, await ann.api('POST', path, 'x', text), 415, 'UNSUPPORTED_MEDIA_TYPE')
    for (const uid of ['no-id', bob.email, '1']) {
      refuses(t, await ann.api('DELETE', `${path}/${uid}`), 400, 'BAD_REQUEST', { what: uid })
      refuses(t, await eve.api('DELETE', `/links/${ID}/${what}/${uid}`), 400, 'BAD_REQUEST')
    }
    refuses(t, await links.api()('POST', path, { email: bob.email }), 401, 'UNAUTHORIZED')
  }
  t.equal((await ann.api<Link>('GET', `/links/${id}`)).json.owners.length, 1, 'nothing was done')
  t.same((await ann.api('GET', `/links/${id}/shares`)).json, [])
}
