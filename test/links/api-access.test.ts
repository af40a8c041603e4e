import { t } from 'tap'
import type { Test } from 'tap'
import { openApiOf, operationsOf } from '../helpers/api.ts'
import { backends } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import { makeLink, startLinks } from '../helpers/links.ts'
import type { Caller } from '../helpers/links.ts'
import { refuseAll, refuses } from '../helpers/refusals.ts'
import type { Refusal, RefusedCall } from '../helpers/refusals.ts'

const [, postgres] = backends
const ID = '00000000-0000-4000-8000-000000000000'

const UNKNOWN = [
  '/',
  '/nothing',
  '/links/',
  '/Links',
  `/links/${ID}/`,
  `/links/${ID}/nothing`,
  '/tags/docs',
  '/tags//links',
  '/tags/%zz/links',
  '/users',
  `/users/${ID}`,
  '/admin',
  '/config/more',
  '//links',
]

/** What is below /admin/ and no operation. */
const BELOW_ADMIN = [
  ...['GET /admin/nothing', 'GET /admin/', 'POST /admin/users', `GET /admin/users/${ID}/role`],
]
/** Refused to others before the query and the id are looked at. */
const ADMIN_CALLS = [
  ...['GET /admin/users', 'GET /admin/links', 'GET /admin/users?limit=x'],
  ...['PUT /admin/users/no-id/role', `PUT /admin/users/${ID}/role`],
]

const links = await startLinks(t, postgres)
const ann = await links.user('ann')
const bob = await links.user('bob')
const root = await links.user('root', { admin: true })

/** The operations of the document with an id for each parameter, and the methods of each path. */
const { text } = await request(`${links.base}/api/openapi.yaml`)
const DESCRIBED = operationsOf(openApiOf(text)).map(({ method, path, operation }) => ({
  method,
  path: path
    .replace('/api/v1', '')
    .replaceAll(/\{u?id\}/g, ID)
    .replace('{change}', '1')
    .replace('{slug}', 'docs'),
  isOpen: operation.security?.length === 0,
}))
const OPERATIONS = DESCRIBED.filter(({ isOpen }) => !isOpen).map(
  ({ method, path }) => `${method} ${path}`,
)
const METHODS = Map.groupBy(DESCRIBED, ({ path }) => path)

async function state(): Promise<unknown> {
  const paths = ['/admin/links', '/admin/users']
  return Promise.all(paths.map(async (path) => (await root.api('GET', path)).json))
}

/** Refuses calls of the API with these headers. */
function refuse(
  t: Test,
  headers: Readonly<Record<string, string>>,
  refusals: readonly Refusal[],
  { base } = links,
): Promise<void> {
  return refuseAll(t, { service: 'links', base: `${base}/api/v1`, headers, state }, refusals)
}

function unauthorized(call: RefusedCall): Refusal {
  return [call, 401, 'UNAUTHORIZED', 'unauthorized']
}

function bearer({ token }: Caller): Readonly<Record<string, string>> {
  return { authorization: `Bearer ${token}` }
}

await t.test('401 UNAUTHORIZED without a valid token, before anything else', async (t) => {
  t.same(
    DESCRIBED.filter(({ isOpen }) => isOpen).map(({ path }) => path),
    ['/config'],
    'this alone is open',
  )
  const bodies = [{}, 'no json', 'a'.repeat(100_000)]
  await refuse(t, {}, [
    ...[...OPERATIONS, 'GET /links/no-id', 'PATCH /links', 'GET /links?limit=none'].map(
      unauthorized,
    ),
    ...UNKNOWN.map((path) => unauthorized(`GET ${path}`)),
    ...[...BELOW_ADMIN, ...ADMIN_CALLS].map(unauthorized),
    unauthorized({ call: 'POST /config', body: {} }),
    ...bodies.map((body) => unauthorized({ call: 'POST /links', body })),
  ])
  for (const path of ['/links', '/nothing', '/admin/users']) {
    t.equal((await links.api()('GET', path)).headers['www-authenticate'], 'Bearer', path)
  }
  t.equal((await links.api()('HEAD', '/links')).status, 401, 'HEAD')
})

await t.test('what is no valid token', async (t) => {
  const { token } = ann
  const other = token.slice(0, -1) + (token.endsWith('a') ? 'b' : 'a')
  const wrong = [
    ...['', 'Bearer', 'Bearer ', token, `Token ${token}`, `Bearer ${other}`, `Bearer ${token}x`],
    ...[`Basic ${Buffer.from(`ann:${token}`).toString('base64')}`, `Bearer ${token.slice(0, -1)}`],
    ...[`Bearer ${token.toLowerCase()}`, `Bearer ${token.slice(3)}`, `Bearer ${token} ${token}`],
    ...[`Bearer ${token},${token}`, `Bearer gh_${'0'.repeat(43)}`, `Bearer ${'x'.repeat(8_000)}`],
    'Bearer \u00ff',
  ]
  for (const authorization of wrong) {
    const answer = await links.api()('GET', '/links', undefined, { authorization })
    const what = `"${authorization.replaceAll(token, 'TOKEN').slice(0, 40)}"`
    refuses(t, answer, [401, 'UNAUTHORIZED', 'unauthorized'], what)
  }
  for (const scheme of ['bearer', 'BEARER', 'Bearer ']) {
    const authorization = `${scheme} ${token}`
    const { status } = await links.api()('GET', '/links', undefined, { authorization })
    t.equal(status, 200, `the scheme's name may be written ${scheme}`)
  }
})

await t.test('no cookie, header, query or body stands for a token', async (t) => {
  const { token } = ann
  for (const headers of [
    { cookie: `token=${token}; session=${token}; gh_token=${token}` },
    { 'remote-email': 'operator@localhost', 'remote-user': 'operator' },
    { 'x-forwarded-email': ann.email, 'x-forwarded-user': ann.email },
    { 'x-forwarded-for': '127.0.0.1', 'x-forwarded-host': 'localhost' },
    { 'x-api-key': token, 'x-auth-token': token, 'x-webhook-token': token },
    { 'proxy-authorization': `Bearer ${token}` },
    { 'x-authorization': `Bearer ${token}` },
  ]) {
    for (const path of ['/links', '/users/me', '/admin/users']) {
      const answer = await links.api()('GET', path, undefined, headers)
      refuses(t, answer, [401, 'UNAUTHORIZED'], Object.keys(headers).join(', '))
    }
  }
  for (const name of ['token', 'access_token', 'api_key', 'authorization']) {
    refuses(t, await links.api()('GET', `/links?${name}=${token}`), [401, 'UNAUTHORIZED'])
    const body = { slug: 'by-body', url: 'https://example.com/', [name]: token }
    refuses(t, await links.api()('POST', '/links', body), [401, 'UNAUTHORIZED'])
  }
  const asAnn = await ann.api<{ email: string }>('GET', '/users/me', undefined, {
    'remote-email': 'operator@localhost',
  })
  t.equal(asAnn.json.email, ann.email, 'beside a token such a header changes nothing')
})

await t.test('the same behind a trusted proxy that names the user', async (t) => {
  const trusted = { ...links.env, GATEHOUSE_TRUSTED_PROXIES: '127.0.0.0/8' }
  const behind = await startLinks(t, postgres, trusted)
  const headers = { 'remote-email': 'bob@example.com', 'x-forwarded-for': '192.0.2.7' }
  const calls = ['/links', '/users/me', '/nothing'].map((path) => unauthorized(`GET ${path}`))
  await refuse(t, headers, calls, behind)
})

await t.test('an unknown path is 404 with a token', async (t) => {
  const calls = UNKNOWN.flatMap((path) =>
    ['GET', 'POST', 'DELETE'].map((method) => `${method} ${path}`),
  )
  await refuse(
    t,
    bearer(ann),
    calls.map((call): Refusal => [call, 404, 'NOT_FOUND']),
  )
  const outside = await request(`${links.base}/api/v2/links`)
  t.match([outside.status, outside.json()], [404, { code: 'NOT_FOUND' }], 'another version')
})

await t.test('a wrong method is 405 with Allow', async (t) => {
  for (const [path, operations] of METHODS) {
    const methods = operations.map(({ method }) => method)
    const allow = [...methods, ...(methods.includes('GET') ? ['HEAD'] : [])].toSorted().join(', ')
    for (const method of ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
      if (allow.split(', ').includes(method)) continue
      const answer = await root.api(method, path)
      refuses(t, answer, [405, 'METHOD_NOT_ALLOWED'], `${method} ${path}`)
      t.equal(answer.headers['allow'], allow)
    }
  }
})

await t.test('below /admin/ whoever is no admin is refused, whatever is there', async (t) => {
  await refuse(
    t,
    bearer(ann),
    [...BELOW_ADMIN, ...ADMIN_CALLS].map((call): Refusal => [
      call,
      403,
      'FORBIDDEN',
      'only admins may do this',
    ]),
  )
})

await t.test('what an admin may not ask for', async (t) => {
  const put = (id: string, role: unknown): RefusedCall => ({
    call: `PUT /admin/users/${id}/role`,
    body: { role },
  })
  const roles = ['', 'Admin', 'owner', 'admin ', 'root', 'a\0', '\ud83d']
  await refuse(t, bearer(root), [
    ['GET /admin/nothing', 404, 'NOT_FOUND'],
    [put('no-id', 'nothing'), 400, 'BAD_REQUEST'],
    ...[bob.id, ID].flatMap((id) =>
      roles.map((role): Refusal => [put(id, role), 400, 'INVALID_ROLE']),
    ),
    ...[undefined, null, 5, true, ['admin'], {}].map((role): Refusal => [
      put(bob.id, role),
      400,
      'BAD_REQUEST',
    ]),
    [put(ID, 'admin'), 404, 'NOT_FOUND'],
  ])
})

await t.test('HEAD is GET without its body', (t) => headLikeGet(t, root))

await t.test('GET /config is public and says the short keyword alone', async (t) => {
  const answer = await links.api()('GET', '/config')
  t.same([answer.status, answer.json], [200, { short_keyword: '127.0.0.1' }])
  const withBadToken = await links.api('gh_none')('GET', '/config')
  t.equal(withBadToken.status, 200, 'a bad token does not matter')
  for (const [env, keyword] of [
    [{ LINKS_BASE_URL: 'https://go.example.com' }, 'go'],
    [{ LINKS_BASE_URL: 'https://go.example.com', LINKS_SHORT_KEYWORD: 'jump' }, 'jump'],
  ] as const) {
    const named = await startLinks(t, postgres, { ...links.env, ...env })
    t.same((await named.api()('GET', '/config')).json, { short_keyword: keyword })
  }
})

async function headLikeGet(t: Test, root: Caller): Promise<void> {
  const link = await makeLink(root, 'headed', { tags: ['docs'] })
  const gets = OPERATIONS.filter((call) => call.startsWith('GET ')).map((call) =>
    call.slice(4).replace(ID, link.id),
  )
  for (const path of [...gets, '/config', '/links/no-id', `/links/${ID}`, '/nothing']) {
    const get = await root.api('GET', path)
    const head = await root.api('HEAD', path)
    t.same([head.status, head.text], [get.status, ''], `HEAD ${path}`)
    t.same(lasting(head.headers), lasting(get.headers), 'the same headers')
  }
}

/** The headers that two answers to one question have in common. */
function lasting({
  date: _date,
  'x-request-id': _id,
  ...headers
}: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return headers
}

await t.test(
  'an extension of a browser may read replies, a page of another site may not',
  async (t) => {
    const extension = `chrome-extension://${'abcdefghijklmnop'.repeat(2)}`
    const call = (method: string, path: string, origin: string, headers: object = {}) =>
      request(`${links.base}/api/v1${path}`, { method, headers: { origin, ...headers } })
    const bearer = { authorization: `Bearer ${ann.token}` }
    const asks = {
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'authorization,content-type',
    }
    const allowed = (headers: object) =>
      Object.entries(headers).filter(([name]) => name.startsWith('access-control-'))

    const asked = await call('OPTIONS', '/links', extension, asks)
    t.equal(asked.status, 204)
    t.same(Object.fromEntries(allowed(asked.headers)), {
      'access-control-allow-origin': extension,
      'access-control-allow-methods': 'GET, POST, PUT, DELETE',
      'access-control-allow-headers': 'authorization, content-type, if-match',
      'access-control-max-age': '600',
    })
    const own = [['access-control-allow-origin', extension]]
    for (const [path, headers, status] of [
      ['/links', bearer, 200],
      ['/config', {}, 200],
      ['/links', {}, 401],
      ['/links/x', bearer, 400],
      ['/nothing', bearer, 404],
    ] as const) {
      const reply = await call('GET', path, extension, headers)
      t.equal(reply.status, status)
      t.same(allowed(reply.headers), own, `${path} ${status}`)
    }
    for (const origin of [
      'https://evil.example',
      'null',
      links.base,
      `${extension}.evil.example`,
      'chrome-extension://short',
      `moz-extension://${ID}`,
    ]) {
      const question = await call('OPTIONS', '/links', origin, asks)
      t.equal(question.status, 401, origin)
      const reply = await call('GET', '/links', origin, bearer)
      t.equal(reply.status, 200)
      t.same(allowed({ ...question.headers, ...reply.headers }), [], origin)
    }
    t.equal((await call('OPTIONS', '/links', extension)).status, 401, 'without a method')
    const page = await request(`${links.base}/-/`, { headers: { origin: extension } })
    t.same(allowed(page.headers), [], 'pages')
    const named = { 'remote-email': ann.email, cookie: `token=${ann.token}` }
    t.equal((await call('GET', '/links', extension, named)).status, 401, 'a token alone counts')
  },
)
