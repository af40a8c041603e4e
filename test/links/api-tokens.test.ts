import { t } from 'tap'
import type { Test } from 'tap'
import type { ApiResponse } from '../helpers/api.ts'
import { backends } from '../helpers/backends.ts'
import { fillTokens, makeLink, startLinks } from '../helpers/links.ts'
import { run } from '../helpers/postgres.ts'
import { refuseAll, refuses } from '../helpers/refusals.ts'
import type { Refusal } from '../helpers/refusals.ts'
import { until } from '../helpers/until.ts'

const [, postgres] = backends
const ID = '00000000-0000-4000-8000-000000000000'
const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
const ROW = ['created_at', 'expires_at', 'id', 'last_used_at', 'name', 'scope']

type Row = {
  readonly id: string
  readonly name: string
  readonly scope: string
  readonly last_used_at: string | null
  readonly expires_at: string | null
}
type Made = Row & { readonly token: string }

const links = await startLinks(t, postgres)
const ann = await links.user('ann')
const bob = await links.user('bob')
const root = await links.user('root', { admin: true })
const url = links.env['DATABASE_URL'] ?? ''

await t.test('POST /tokens: 201, the token is shown once', async (t) => {
  const answer = await ann.api<Made>('POST', '/tokens', { name: ' laptop ' })
  t.equal(answer.status, 201)
  const { token, ...row } = answer.json
  t.ok(/^gh_[0-9A-Za-z]{43}$/.test(token), 'gh_ and 32 bytes in base 62')
  t.same(Object.keys(row).toSorted(), ROW)
  t.match(row, { name: 'laptop', scope: 'full', expires_at: null, last_used_at: null })
  t.match(row, { created_at: INSTANT })
  const me = await links.api(token)('GET', '/users/me')
  t.match(me, { status: 200, json: { id: ann.id, email: ann.email } }, 'it is the user’s')
  const list = await ann.api<{ tokens: Row[] }>('GET', '/tokens')
  t.same(Object.keys(list.json), ['tokens'])
  t.notOk(list.text.includes(token), 'and never shown again')
  for (const listed of list.json.tokens) t.same(Object.keys(listed).toSorted(), ROW)
  t.equal(list.json.tokens[0]?.id, row.id, 'newest first')
  t.equal(list.json.tokens.length, 2, 'with the one that asks')
  const other = await bob.api<{ tokens: Row[] }>('GET', '/tokens')
  t.equal(other.json.tokens.length, 1, 'one’s own only')
  const admins = await root.api<{ tokens: Row[] }>('GET', '/tokens')
  t.equal(admins.json.tokens.length, 1, 'also for admins')
})

await t.test('fields', fields)
await t.test('scopes', scopes)

await t.test('DELETE /tokens/{id}: revoked at once', async (t) => {
  const { json } = await ann.api<Made>('POST', '/tokens', { name: 'short lived' })
  const call = links.api(json.token)
  t.equal((await call('GET', '/links')).status, 200)
  for (const { api } of [bob, root]) {
    refuses(t, await api('DELETE', `/tokens/${json.id}`), [404, 'NOT_FOUND'], 'another’s')
  }
  t.equal((await call('GET', '/links')).status, 200, 'still good')
  const answer = await ann.api('DELETE', `/tokens/${json.id}`)
  t.equal(answer.status, 204)
  refuses(t, await call('GET', '/links'), [401, 'UNAUTHORIZED', 'unauthorized'])
  const none = await ann.api('DELETE', `/tokens/${json.id}`)
  refuses(t, none, [404, 'NOT_FOUND'], 'twice')
  const never = await ann.api('DELETE', `/tokens/${ID}`)
  t.same([never.status, never.json], [none.status, none.json], 'as one that never was')
  const others = await bob.api('DELETE', `/tokens/${json.id}`)
  t.same(others.json, none.json)
  for (const id of ['no-id', json.name, '1']) {
    refuses(t, await ann.api('DELETE', `/tokens/${encodeURIComponent(id)}`), [400, 'BAD_REQUEST'])
  }
  const own = await ann.api<Made>('POST', '/tokens', { name: 'ends itself' })
  const last = links.api(own.json.token)
  t.equal((await last('DELETE', `/tokens/${own.json.id.toUpperCase()}`)).status, 204)
  refuses(t, await last('GET', '/users/me'), [401, 'UNAUTHORIZED'])
})

await t.test('last_used_at', async (t) => {
  const { json } = await ann.api<Made>('POST', '/tokens', { name: 'watched' })
  const row = async () =>
    (await ann.api<{ tokens: Row[] }>('GET', '/tokens')).json.tokens.find(
      ({ id }) => id === json.id,
    )
  t.equal((await row())?.last_used_at, null, 'not used yet')
  const before = Date.now()
  await links.api(json.token)('GET', '/links')
  const used = await until(async () => (await row())?.last_used_at, 'the use to be noted')
  t.match(used, INSTANT)
  t.ok(Math.abs(Date.parse(used) - before) < 30_000, 'now')
})

await t.test('a token that expires', expiry)

await t.test('a user has a thousand tokens at most', async (t) => {
  const full = await links.user('full')
  await fillTokens(url, full.email, 999)
  const make = (): Promise<ApiResponse<Made>> =>
    full.api<Made>('POST', '/tokens', { name: 'more' })
  const answers = await Promise.all(Array.from({ length: 10 }, make))
  const [made, ...late] = answers.toSorted((a, b) => a.status - b.status)
  t.equal(made?.status, 201, 'the last place is taken once')
  const error = 'a user may have 1,000 tokens; revoke one that is not needed first'
  for (const answer of [...late, await make()]) refuses(t, answer, [400, 'BAD_REQUEST', error])
  const { json } = await full.api<{ tokens: Row[] }>('GET', '/tokens')
  t.equal(json.tokens.length, 1_000, 'all are listed')
  t.equal((await full.api('DELETE', `/tokens/${made?.json.id}`)).status, 204)
  t.equal((await make()).status, 201, 'there is room again')
})

await t.test('expired tokens make room when there is none, and not before', async (t) => {
  const old = await links.user('old')
  await fillTokens(url, old.email, 999)
  const expire = `update links.tokens set expires_at = now()
    where name = 'old' and user_id = (select id from links.users where email = $1)`
  await run(url, expire, [old.email])
  const make = (): Promise<ApiResponse<Made>> => old.api<Made>('POST', '/tokens', { name: 'job' })
  const listed = async (): Promise<readonly string[]> =>
    (await old.api<{ tokens: Row[] }>('GET', '/tokens')).json.tokens.map(({ name }) => name)
  t.equal((await make()).status, 201, 'the last place')
  t.equal((await listed()).filter((name) => name === 'old').length, 998, 'they stay listed')
  t.equal((await make()).status, 201, 'one more than a thousand')
  t.same(await listed(), ['job', 'job', 'test'])
})

await t.test('more tokens than a thousand, from before, are all listed', async (t) => {
  const more = await links.user('more')
  await fillTokens(url, more.email, 1_200)
  const { tokens } = (await more.api<{ tokens: Row[] }>('GET', '/tokens')).json
  t.equal(tokens.length, 1_200)
  refuses(t, await more.api('POST', '/tokens', { name: 'more' }), [400, 'BAD_REQUEST'])
  t.equal((await more.api('DELETE', `/tokens/${tokens[1_100]?.id}`)).status, 204)
  t.equal((await more.api<{ tokens: Row[] }>('GET', '/tokens')).json.tokens.length, 1_199)
})

// Stops the server: the last one.
await t.test('uses at one time are noted once', async (t) => {
  await run(url, 'create table noted (id uuid)', [])
  await run(
    url,
    `create function note() returns trigger language plpgsql
     as $$ begin insert into noted values (new.id); return null; end $$`,
    [],
  )
  const trigger =
    'create trigger uses after update on links.tokens for each row execute function note()'
  await run(url, trigger, [])
  const { json } = await ann.api<Made>('POST', '/tokens', { name: 'busy' })
  const call = links.api(json.token)
  await Promise.all(Array.from({ length: 20 }, () => call('GET', '/users/me')))
  const uses = (): Promise<readonly unknown[]> =>
    run(url, 'select id from noted where id = $1', [json.id])
  await until(async () => (await uses()).length > 0, 'the use to be noted')
  await links.server.stop()
  t.equal((await uses()).length, 1)
})

async function fields(t: Test): Promise<void> {
  const { api } = ann
  const later = '2099-01-31T12:00:00.250Z'
  for (const [sent, expected] of [
    [{ name: 'n'.repeat(100) }, { name: 'n'.repeat(100) }],
    [
      { name: '日本 <b>&', scope: 'read' },
      { name: '日本 <b>&', scope: 'read' },
    ],
    [
      { name: 'x', scope: 'create', expires_at: null },
      { scope: 'create', expires_at: null },
    ],
    [{ name: 'x', expires_at: later }, { expires_at: later }],
    [{ name: 'x', expires_at: '2099-01-31T14:00:00+02:00' }, { expires_at: /T12:00:00\.000Z$/ }],
    [{ name: 'x', role: 'admin', user_id: ID, id: ID }, { last_used_at: null }],
  ] as const) {
    const answer = await api<Made>('POST', '/tokens', sent)
    t.match(answer, { status: 201, json: expected }, JSON.stringify(sent).slice(0, 60))
    t.not(answer.json.id, ID)
    if (answer.json.scope === 'full') {
      const me = await links.api(answer.json.token)('GET', '/users/me')
      t.match(me.json, { role: 'user' })
    }
  }
  const call = 'POST /tokens'
  const names = [
    ...[
      undefined,
      null,
      5,
      '',
      '  ',
      '\t',
      'n'.repeat(101),
      'a\0',
      'a\nb',
      'moc\u202e',
      '\u2066a',
    ],
    ...['\ud83d', ['x']],
  ]
  const scopesOfNone = [null, '', 'all', 'FULL', 'admin', 5, ['full'], 'read ', 'a\0']
  const times = [
    ...['', 'tomorrow', '2099-01-31', '2099-01-31T12:00:00', '2099-13-01T00:00:00Z', '30d', 4e12],
    ...['2001-01-01T00:00:00Z', new Date().toISOString(), '2099-01-31T12:00:00Zx', true, [later]],
    ...[{}, '2099-02-30T00:00:00Z', '2099-01-31T25:00:00Z', ' 2099-01-31T12:00:00Z'],
    ...['12099-01-01T00:00Z', '9999-12-31T23:59:59-23:59', '0000-01-01T00:00:00Z'],
  ]
  const refuser = {
    service: 'links',
    base: `${links.base}/api/v1`,
    headers: { authorization: `Bearer ${ann.token}` },
    state: async () =>
      (await api<{ tokens: Row[] }>('GET', '/tokens')).json.tokens.map(({ id }) => id),
  } as const
  await refuseAll(t, refuser, [
    ...names.map((name): Refusal => [{ call, body: { name } }, 400, 'BAD_REQUEST']),
    ...scopesOfNone.map((scope): Refusal => [
      { call, body: { name: 'x', scope } },
      400,
      'BAD_REQUEST',
    ]),
    ...times.map((expires_at): Refusal => [
      { call, body: { name: 'x', expires_at } },
      400,
      'BAD_REQUEST',
    ]),
  ])
}

async function scopes(t: Test): Promise<void> {
  const link = await makeLink(ann, 'scoped')
  const body = { slug: 'by-scope', url: 'http://wiki/' }
  /** What is asked, and what `read` and `create` tokens of an admin get; a code stands for a refusal. */
  const calls = [
    ['GET', '/users/me', undefined, 200, 200],
    ['HEAD', '/users/me', undefined, 200, 200],
    ['GET', '/links', undefined, 200, 403],
    ['GET', `/links/${link.id}`, undefined, 200, 403],
    ['GET', `/links/${link.id}/owners`, undefined, 200, 403],
    ['GET', `/links/${link.id}/shares`, undefined, 200, 403],
    ['GET', '/tags', undefined, 200, 403],
    ['GET', '/tags/none/links', undefined, 404, 403],
    ['GET', '/admin/users', undefined, 200, 403],
    ['GET', '/admin/links', undefined, 200, 403],
    ['POST', '/links', body, 403, 201],
    ['PUT', `/links/${link.id}`, { url: 'http://x/' }, 403, 403],
    ['DELETE', `/links/${link.id}`, undefined, 403, 403],
    ['POST', `/links/${link.id}/owners`, { email: root.email }, 403, 403],
    ['DELETE', `/links/${link.id}/owners/${ann.id}`, undefined, 403, 403],
    ['POST', `/links/${link.id}/shares`, { email: root.email }, 403, 403],
    ['DELETE', `/links/${link.id}/shares/${ann.id}`, undefined, 403, 403],
    ['PUT', `/admin/users/${ann.id}/role`, { role: 'admin' }, 403, 403],
    ['GET', '/tokens', undefined, 403, 403],
    ['POST', '/tokens', { name: 'more', scope: 'full' }, 403, 403],
    ['DELETE', `/tokens/${ID}`, undefined, 403, 403],
    ['POST', '/links', 'no json', 403, 400],
    ['GET', '/nothing', undefined, 404, 404],
    ['DELETE', '/links', undefined, 405, 405],
    ['GET', '/config', undefined, 200, 200],
  ] as const
  for (const [at, scope] of (['read', 'create'] as const).entries()) {
    const call = links.api(await links.token(root.email, { scope }))
    for (const [method, path, sent, read, create] of calls) {
      const answer = await call(method, path, sent)
      const [expected, what] = [[read, create][at], `${scope}: ${method} ${path}`]
      if (expected === 403) refuses(t, answer, [403, 'FORBIDDEN'], what)
      else t.equal(answer.status, expected, what)
    }
  }
  t.match((await ann.api('GET', `/links/${link.id}`)).json, link, 'the link is as it was')
}

async function expiry(t: Test): Promise<void> {
  const expires_at = new Date(Date.now() + 3_600_000).toISOString()
  const { json } = await ann.api<Made>('POST', '/tokens', { name: 'brief', expires_at })
  t.equal(json.expires_at, expires_at)
  const call = links.api(json.token)
  t.equal((await call('GET', '/links')).status, 200, 'good before')
  await run(url, "update links.tokens set expires_at = now() - interval '1 ms' where id = $1", [
    json.id,
  ])
  refuses(t, await call('GET', '/links'), [401, 'UNAUTHORIZED', 'unauthorized'])
  const { tokens } = (await ann.api<{ tokens: Row[] }>('GET', '/tokens')).json
  t.ok(
    tokens.find(({ id }) => id === json.id),
    'it is still listed',
  )
}
