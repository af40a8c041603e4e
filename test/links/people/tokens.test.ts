import { t } from 'tap'
import { INSTANT } from '../../helpers/api.ts'
import { request, type Response } from '../../helpers/http.ts'
import {
  HTMX,
  NAVIGATION,
  identity,
  makeLink,
  openPages,
  visitorAt,
  type Caller,
  type Headers,
  type PageUser,
} from '../../helpers/links.ts'
import { expectStatus, refuses, type Refusal } from '../../helpers/refusals.ts'
import { keepSecret } from '../../helpers/secrets.ts'
import { until } from '../../helpers/until.ts'

const ID = '00000000-0000-4000-8000-000000000000'
const ROW = ['created_at', 'expires_at', 'id', 'last_used_at', 'name', 'scope']
const PATH = '/-/tokens'
const DAY_MS = 86_400_000
const CROSS_SITE = { 'sec-fetch-site': 'cross-site' }

type Row = Readonly<Record<'id' | 'name', string>> &
  Readonly<Record<'last_used_at' | 'expires_at', string | null>>
type Made = Row & { token: string }

const links = await openPages(t)
const ann = await links.user('ann')
const bob = await links.user('bob')
const root = await links.user('root', { admin: true })
const { query } = links
const docs = await makeLink(ann, 'docs')

async function tokensOf({ read }: Caller): Promise<readonly Row[]> {
  return (await read<{ tokens: Row[] }>('/tokens')).tokens
}

async function tokenNamed(wanted: string) {
  return (await tokensOf(ann)).find(({ name }) => name === wanted)
}

const create = ({ api }: Caller, fields: object) => api<Made>('POST', '/tokens', fields)

/** Posts the form; the answer shows a token by design. */
function post(who: PageUser, fields: Headers, headers: Headers = {}) {
  const type = { 'content-type': 'application/x-www-form-urlencoded' }
  return request(links.base + PATH, {
    method: 'POST',
    body: new URLSearchParams(fields).toString(),
    headers: { ...identity(who.email), ...type, ...headers },
    secretShown: true,
  })
}

function tokenIn({ text }: Response) {
  const token = /id="made-token"[^>]*><code>(gh_[0-9A-Za-z]{43})</.exec(text)?.[1]
  if (token === undefined) throw new Error(`the page shows no token: ${text.slice(0, 300)}`)
  return keepSecret('page-token', token)
}

await t.test('a token is shown once, and listed to its user alone', async (t) => {
  const answer = await expectStatus(201, create(ann, { name: ' listed ' }))
  const { token, ...row } = answer.json
  t.ok(/^gh_[0-9A-Za-z]{43}$/.test(token), 'gh_ and 32 bytes in base 62')
  t.match(row, { name: 'listed', scope: 'full', expires_at: null, last_used_at: null })
  const me = await links.api(token)('GET', '/users/me')
  t.match(me, { status: 200, json: { id: ann.id, email: ann.email } }, 'it is the user’s')
  const list = await ann.api<{ tokens: Row[] }>('GET', '/tokens')
  t.notOk(list.text.includes(token), 'and never shown again')
  for (const listed of list.json.tokens) t.same(Object.keys(listed).toSorted(), ROW)
  t.equal(list.json.tokens[0]?.id, row.id, 'newest first')
  for (const other of [bob, root]) t.equal((await tokensOf(other)).length, 1, other.email)
  t.notMatch(await bob.text(PATH), 'listed', 'nor on the page')
  const nobody = await bob.text(PATH, { 'remote-email': 'eve@example.com' })
  t.match(nobody, 'You have no tokens yet')
})

await t.test('what a token may be, and what is refused', async (t) => {
  const later = '2099-01-31T12:00:00.250Z'
  for (const [sent, expected] of [
    [{ name: 'n'.repeat(100), role: 'admin', user_id: ID, id: ID }, { name: 'n'.repeat(100) }],
    [
      { name: '日本 <b>&', scope: 'read' },
      { scope: 'read', expires_at: null },
    ],
    [
      { name: 'x', scope: 'create', expires_at: later },
      { scope: 'create', expires_at: later },
    ],
    [{ name: 'x', expires_at: '2099-01-31T14:00:00+02:00' }, { expires_at: /T12:00:00\.000Z$/ }],
  ] as const) {
    const { status, json } = await create(ann, sent)
    t.match([status, json], [201, expected], sent.name.slice(0, 9))
    t.not(json.id, ID)
  }
  const names = [undefined, 5, '', '  ', 'n'.repeat(101), 'a\0', 'a\nb', 'moc\u202e', '\ud83d']
  const scopes = [null, '', 'all', 'FULL', ['full'], 'read ']
  const none = ['', 'tomorrow', '2099-01-31', '2099-01-31T12:00:00', '2099-02-30T00:00:00Z']
  const past = ['2001-01-01T00:00:00Z', new Date().toISOString()]
  const times = [...none, ...past, 4e12, [later], '12099-01-01T00:00Z']
  const bad = (body: object): Refusal => [{ call: 'POST /tokens', body }, 400, 'BAD_REQUEST']
  const state = async () => (await tokensOf(ann)).map(({ id }) => id)
  await ann.refused(t, state, [
    ...names.map((name) => bad({ name })),
    ...scopes.map((scope) => bad({ name: 'x', scope })),
    ...times.map((expires_at) => bad({ name: 'x', expires_at })),
  ])
})

await t.test('a token does what its scope has', async (t) => {
  const link = `/links/${docs.id}`
  const made = JSON.stringify({ slug: 'by-scope', url: 'http://wiki/' })
  /** What is asked, and what `read` and `create` tokens of an admin get; 403 stands for the refusal. */
  const calls = [
    ['GET /users/me', 200, 200],
    ['GET /links', 200, 403],
    [`GET ${link}`, 200, 403],
    ['GET /tags/none/links', 404, 403],
    ['GET /admin/users', 200, 403],
    [`POST /links ${made}`, 403, 201],
    [`PUT ${link} {"url":"http://x/"}`, 403, 403],
    [`DELETE ${link}`, 403, 403],
    [`DELETE ${link}/shares/${ann.id}`, 403, 403],
    [`PUT /admin/users/${ann.id}/role {"role":"admin"}`, 403, 403],
    ['GET /tokens', 403, 403],
    ['POST /tokens {"name":"more","scope":"full"}', 403, 403],
    ['POST /links no-json', 403, 400],
    ['GET /nothing', 404, 404],
    ['GET /config', 200, 200],
  ] as const
  for (const [at, scope] of (['read', 'create'] as const).entries()) {
    const call = links.api(await links.token(root.email, { scope }))
    for (const [asked, read, create] of calls) {
      const [method = '', path = '', body] = asked.split(' ')
      const answer = await call(method, path, body)
      const [expected, what] = [[read, create][at], `${scope}: ${asked}`]
      if (expected === 403) refuses(t, answer, [403, 'FORBIDDEN'], what)
      else t.equal(answer.status, expected, what)
    }
  }
  t.match(await ann.read(link), docs, 'the link is as it was')
})

await t.test('a revoked or expired token stops at once, and its use is noted', async (t) => {
  const { json } = await create(ann, { name: 'short <b>lived</b>' })
  const call = links.api(json.token)
  const noted = async () => (await tokenNamed(json.name))?.last_used_at
  t.equal(await noted(), null, 'not used yet')
  await expectStatus(200, call('GET', '/links'))
  t.match(await until(noted, 'the use to be noted'), INSTANT)
  for (const { api } of [bob, root]) {
    refuses(t, await api('DELETE', `/tokens/${json.id}`), [404, 'NOT_FOUND'], 'another’s')
  }
  const revoke = `${PATH}/${json.id}/revoke`
  refuses(t, await bob.post(revoke), [404, 'NOT_FOUND'])
  await expectStatus(403, ann.post(revoke, {}, CROSS_SITE))
  await expectStatus(200, call('GET', '/links'), 'still good')
  const gone = await ann.post(revoke)
  t.match(gone, { status: 200, text: /^<section id="tokens"/ })
  const unauthorized = [401, 'UNAUTHORIZED', 'unauthorized'] as const
  refuses(t, await call('GET', '/links'), unauthorized)
  const again = await ann.post(revoke, {}, NAVIGATION)
  t.match(again, { status: 404, text: /<!doctype html>[\s\S]*You have no token with this id\./ })
  refuses(t, await ann.api('DELETE', `/tokens/${json.id}`), [404, 'NOT_FOUND'], 'twice')
  refuses(t, await ann.api('DELETE', '/tokens/no-id'), [400, 'BAD_REQUEST'])

  const own = await create(ann, { name: 'ends itself' })
  const last = links.api(own.json.token)
  await expectStatus(204, last('DELETE', `/tokens/${own.json.id.toUpperCase()}`))
  await expectStatus(401, last('GET', '/users/me'))

  const brief = await create(ann, { name: 'brief', expires_at: '2099-01-31T12:00:00Z' })
  const expiring = links.api(brief.json.token)
  const pass = "update links.tokens set expires_at = now() - interval '1 ms' where id = $1"
  await query(pass, [brief.json.id])
  const expired = await expiring('GET', '/links')
  refuses(t, expired, unauthorized)
  t.match(expired.headers['www-authenticate'], /error="invalid_token".*the token has expired/)
  t.ok(await tokenNamed('brief'), 'it is still listed')
})

await t.test('a user has a thousand tokens at most', async (t) => {
  const full = await links.user('full')
  const old = `insert into links.tokens (user_id, name, scope, token_hash, created_at)
    select id, 'old', 'read', sha256(convert_to(email || n, 'UTF8')), now()
      from links.users, generate_series(2, 999) n where id = $1`
  await query(old, [full.id])
  const make = () => create(full, { name: 'more' })
  const answers = await Promise.all(Array.from({ length: 10 }, make))
  const [made, ...late] = answers.toSorted((a, b) => a.status - b.status)
  t.equal(made?.status, 201, 'the last place is taken once')
  const error = 'a user may have 1,000 tokens; revoke one that is not needed first'
  for (const answer of late) refuses(t, answer, [400, 'BAD_REQUEST', error])
  const text = /role="alert">\s*A user may have 1,000 tokens; revoke/
  t.match(await post(full, { name: 'more' }, HTMX), { status: 400, text })
  t.equal((await tokensOf(full)).length, 1_000, 'all are listed')
  await expectStatus(204, full.api('DELETE', `/tokens/${made?.json.id}`))
  const expire = `update links.tokens set expires_at = now()
    where name = 'old' and user_id = (select id from links.users where email = $1)`
  await query(expire, [full.email])
  await expectStatus(201, make(), 'there is room again')
  t.equal((await tokensOf(full)).length, 1_000, 'expired ones stay listed')
  await expectStatus(201, make(), 'and make room when there is none')
  t.equal((await tokensOf(full)).length, 3)
})

await t.test('the form makes a token, shows it this once, and says how it is used', async (t) => {
  const before = Date.now()
  const made = await post(ann, { name: ' laptop ', scope: 'read', expires: '7d' })
  const headers = { 'cache-control': 'no-store' }
  t.match(made, { status: 200, headers, text: /^<section id="tokens"/ }, 'the fragment')
  const token = tokenIn(made)
  const sent = `curl -H &#39;Authorization: Bearer ${token}&#39; &#39;${links.base}/api/v1/links`
  t.match(made.text, sent)
  const shown = /id="made-configuration"[^>]*><code>(.*?)<\/code>/s.exec(made.text)?.[1]
  const Authorization = `Bearer ${token}`
  t.same(JSON.parse((shown ?? '').replaceAll('&quot;', '"')).mcpServers['gatehouse-links'], {
    type: 'http',
    url: `${links.base}/mcp/links`,
    headers: { Authorization },
  })
  await expectStatus(403, links.api(token)('POST', '/links', {}), 'within its scope')
  const lives = Date.parse((await tokenNamed('laptop'))?.expires_at ?? '') - before
  t.ok(lives >= 7 * DAY_MS && lives < 7 * DAY_MS + 60_000, 'for seven days')
  // The transcripts of these pages are searched for the token as well.
  t.match(await ann.text(PATH), '<bdi>laptop</bdi>')

  tokenIn(await post(ann, { name: 'no fields' }))
  t.match(await tokenNamed('no fields'), { scope: 'full', expires_at: null })
  const creates = await post(ann, { name: 'ci', scope: 'create', expires: '' })
  tokenIn(creates)
  t.match(creates.text, '&quot;slug&quot;', 'a command within its scope')
})

await t.test('the form refuses what the API refuses, and keeps what was typed', async (t) => {
  const many = (await tokensOf(ann)).length
  await expectStatus(403, post(ann, { name: 'x' }, CROSS_SITE))
  const typed = { name: '"><script>alert(1)</script>', scope: 'create', expires: 'soon' }
  const { text } = await expectStatus(400, post(ann, typed, NAVIGATION))
  for (const part of [
    '<!doctype html>',
    'value="&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;"',
    /value="create"\s+checked/,
    /id="token-expires-refused"[^>]*>\s*Expires must be a time/,
  ]) {
    t.match(text, part)
  }

  const nobody = visitorAt(links.base, '')
  const page = await nobody.get(PATH, NAVIGATION)
  t.match(page, { status: 403, text: 'You are not signed in' })
  const row = await tokenNamed('laptop')
  for (const path of [PATH, `${PATH}/${row?.id}/revoke`]) {
    await expectStatus(403, nobody.post(path, { name: 'x' }))
  }
  t.equal((await tokensOf(ann)).length, many, 'nothing was made or revoked')
})

await t.test('the form of a page from before the newest token creates none', async (t) => {
  const newest = (page: Response) => /name="newest" value="([^"]*)"/.exec(page.text)?.[1] ?? '?'
  const seen = newest(await ann.get(PATH))
  tokenIn(await post(ann, { name: 'once', newest: seen }, NAVIGATION))
  const count = (await tokensOf(ann)).length
  const again = await post(ann, { name: 'once', newest: seen }, NAVIGATION)
  t.match(again, { status: 409, text: 'A token was created since this page was loaded' })
  t.equal((await tokensOf(ann)).length, count)
  tokenIn(await post(ann, { name: 'twice', newest: newest(again) }, NAVIGATION))
})
