import { t, type Test } from 'tap'
import { openApiOf, operationsOf } from '../helpers/api.ts'
import { checkDocument } from '../helpers/document.ts'
import { request } from '../helpers/http.ts'
import { makeLink, openLinks, type Caller, type Headers } from '../helpers/links.ts'
import { expectStatus, refuseAll, refuses, type Refusal } from '../helpers/refusals.ts'

const ID = '00000000-0000-4000-8000-000000000000'
const UNAUTHORIZED = [401, 'UNAUTHORIZED', 'unauthorized'] as const

/** The document has these operations, and no other: those of the contract, and after them the added ones. */
const OPERATIONS = `
  GET /config
  GET /links
  POST /links
  GET /links/{id}
  PUT /links/{id}
  DELETE /links/{id}
  GET /links/{id}/owners
  POST /links/{id}/owners
  DELETE /links/{id}/owners/{uid}
  GET /links/{id}/shares
  POST /links/{id}/shares
  DELETE /links/{id}/shares/{uid}
  GET /tags
  GET /tags/{slug}/links
  GET /users/me
  GET /tokens
  POST /tokens
  DELETE /tokens/{id}
  GET /admin/users
  PUT /admin/users/{id}/role
  GET /admin/links
  GET /links/{id}/history
  POST /links/{id}/history/{change}/restore
  GET /links/{id}/stats
  PUT /links/{id}/owner
  PUT /admin/users/{id}/disabled
  GET /deleted-links
  POST /links/{id}/restore
  GET /checked-links
  GET /links/{id}/check
  PUT /links/{id}/check
  GET /admin/missing-slugs
  PUT /links/{id}/slug
  POST /admin/import`
  .trim()
  .split(/\n */)
const SCHEMAS = ['Link', 'Tag', 'User', 'Owner', 'Share', 'Token', 'Error']
/** decisions.md section 4. */
const CODES = {
  400: [
    'BAD_REQUEST',
    'INVALID_SLUG',
    'RESERVED_SLUG',
    'INVALID_URL',
    'INVALID_FIELD_LENGTH',
    'INVALID_TAG',
    'TOO_MANY_TAGS',
    'INVALID_VISIBILITY',
    'INVALID_ROLE',
    'PRIMARY_OWNER_PROTECTED',
  ],
  401: ['UNAUTHORIZED'],
  403: ['FORBIDDEN'],
  404: ['NOT_FOUND'],
  409: ['SLUG_CONFLICT', 'DUPLICATE_OWNER', 'DUPLICATE_SHARE', 'LAST_ADMIN'],
  412: ['PRECONDITION_FAILED'],
  413: ['BODY_TOO_LARGE'],
  415: ['UNSUPPORTED_MEDIA_TYPE'],
  500: ['TAG_WRITE_FAILED', 'INTERNAL_ERROR'],
  503: ['UNAVAILABLE'],
}

const UNKNOWN =
  `/ /nothing /links/ /Links /links/${ID}/nothing /tags/docs /tags/%zz/links /users/${ID} /admin /config/more`
    .split(' ')
    .map((path) => `GET ${path}`)

/** What is below /admin/: no operations, and calls that are refused before their query and id are looked at. */
const BELOW_ADMIN = [
  'GET /admin/nothing',
  'GET /admin/',
  'POST /admin/users',
  'GET /admin/links',
  'GET /admin/users?limit=x',
  'PUT /admin/users/no-id/role',
]

const links = await openLinks(t)
const { base } = links
const ann = await links.user('ann')
const bob = await links.user('bob')
const root = await links.user('root', { admin: true })
const document = await checkDocument(t, base, {
  operations: OPERATIONS.map((name) => name.replace(' ', ' /api/v1')),
  unrefused: '/api/v1/config',
})
/** The operations of the document, with an id for each parameter. */
const DESCRIBED = operationsOf(document).map(({ method, path, operation }) => ({
  method,
  path: path
    .replace('/api/v1', '')
    .replaceAll(/\{u?id\}/g, ID)
    .replace('{change}', '1')
    .replace('{slug}', 'docs'),
  isOpen: operation.security?.length === 0,
}))
const CALLS = DESCRIBED.filter(({ isOpen }) => !isOpen).map(
  ({ method, path }) => `${method} ${path}`,
)

/** Refuses calls of the API with these headers. */
function refuse(t: Test, headers: Headers, refusals: readonly Refusal[], at = links) {
  const state = () => Promise.all(['/links', '/users'].map((of) => root.read(`/admin${of}`)))
  return refuseAll(t, { service: 'links', base: `${at.base}/api/v1`, headers, state }, refusals)
}

const bearer = ({ token }: Caller) => ({ authorization: `Bearer ${token}` })

await t.test(
  'the document describes everything once, with the codes of each status',
  async (t) => {
    const { schemas, responses, securitySchemes } = document.components
    for (const name of SCHEMAS) t.type(schemas[name]?.properties, 'object', name)
    t.match(securitySchemes, { bearer: { type: 'http', scheme: 'bearer' } })
    t.same(document.security, [{ bearer: [] }])
    const codes: Record<string, unknown> = {}
    for (const { operation } of operationsOf(document)) {
      for (const [status, response] of Object.entries(operation.responses)) {
        if (Number(status) < 400) continue
        const name = response.$ref?.split('/').at(-1) ?? ''
        const [error, narrow] = responses[name]?.content['application/json'].schema.allOf ?? []
        t.same(error, { $ref: '#/components/schemas/Error' })
        codes[status] = narrow?.properties?.['code']?.enum
      }
    }
    t.same(codes, CODES)
    const text = JSON.stringify(document.paths)
    t.notMatch(text, /is_primary|link_count|display_name/, 'no schema is written out twice')
    const schema = { type: 'string' }
    const responses200 = { 200: { headers: { ETag: { required: true, schema } } } }
    const header = { name: 'If-Match', in: 'header', required: false, schema }
    const parameters = [{ name: 'id' }, header]
    t.match(document.paths['/api/v1/links/{id}'], {
      get: { responses: responses200 },
      put: { responses: responses200, parameters },
      delete: { parameters },
    })
  },
)

await t.test('addresses and keyword come from the configuration', async (t) => {
  const open = DESCRIBED.filter(({ isOpen }) => isOpen).map(({ path }) => path)
  t.same(open, ['/config'], 'this alone is open')
  t.match(document.servers, [{ url: base }, { url: '/' }])
  await expectStatus(200, links.api('gh_none')('GET', '/config'), 'also by a bad token')
  const url = 'https://go.example.com'
  for (const [env, short_keyword] of [
    [{ LINKS_BASE_URL: url }, 'go'],
    [{ LINKS_BASE_URL: url, LINKS_SHORT_KEYWORD: 'jump' }, 'jump'],
  ] as const) {
    const named = await openLinks(t, { ...links.env, ...env })
    t.same((await named.api()('GET', '/config')).json, { short_keyword })
    const { servers } = openApiOf((await request(`${named.base}/api/openapi.yaml`)).text)
    t.match(servers, [{ url }, { url: '/' }])
  }
})

await t.test('401 UNAUTHORIZED without a valid token, before anything else', async (t) => {
  const calls = [...CALLS, ...UNKNOWN, ...BELOW_ADMIN, 'PATCH /links']
  await refuse(t, {}, [
    ...calls.map((call): Refusal => [call, ...UNAUTHORIZED]),
    [{ call: 'POST /config', body: {} }, ...UNAUTHORIZED],
    [{ call: 'POST /links', body: 'no json' }, ...UNAUTHORIZED],
    [{ call: 'POST /links', body: 'a'.repeat(100_000) }, ...UNAUTHORIZED],
  ])
  t.equal((await links.api()('GET', '/links')).headers['www-authenticate'], 'Bearer')
  const trusted = { ...links.env, GATEHOUSE_TRUSTED_PROXIES: '127.0.0.0/8' }
  const behind = await openLinks(t, trusted)
  const named = { 'remote-email': bob.email, 'x-forwarded-for': '192.0.2.7' }
  await refuse(t, named, [['GET /links', ...UNAUTHORIZED]], behind)
})

await t.test('what is no valid token, and what does not stand for one', async (t) => {
  const { token } = ann
  const other = token.slice(0, -1) + (token.endsWith('a') ? 'b' : 'a')
  const call = 'GET /links'
  const wrong = [
    '',
    'Bearer',
    token,
    `Token ${token}`,
    `Bearer ${other}`,
    `Bearer ${token}x`,
    `Basic ${Buffer.from(`ann:${token}`).toString('base64')}`,
    `Bearer ${token.slice(0, -1)}`,
    `Bearer ${token.toLowerCase()}`,
    `Bearer ${token} ${token}`,
    `Bearer ${token},${token}`,
    `Bearer gh_${'0'.repeat(43)}`,
    `Bearer ${'x'.repeat(8_000)}`,
    'Bearer \u00ff',
  ].map((authorization) => ({ authorization }))
  const beside = [
    { cookie: `token=${token}; session=${token}` },
    { 'remote-email': 'operator@localhost', 'x-forwarded-email': ann.email },
    { 'x-forwarded-for': '127.0.0.1', 'x-forwarded-host': 'localhost' },
    { 'x-api-key': token, 'x-auth-token': token, 'x-authorization': `Bearer ${token}` },
    { 'proxy-authorization': `Bearer ${token}` },
  ]
  const body = { slug: 'by-body', url: 'https://example.com/', token, access_token: token }
  await refuse(t, {}, [
    ...[...wrong, ...beside].map((headers): Refusal => [{ call, headers }, ...UNAUTHORIZED]),
    [`${call}?token=${token}&access_token=${token}`, ...UNAUTHORIZED],
    [{ call: 'POST /links', body }, ...UNAUTHORIZED],
  ])
  const named = { authorization: `bearer  ${token}`, 'remote-email': 'operator@localhost' }
  const asAnn = await links.api()('GET', '/users/me', undefined, named)
  t.match(asAnn.json, { email: ann.email }, 'beside a token such a header changes nothing')
})

await t.test('unknown paths, wrong methods, and what is for admins', async (t) => {
  await refuse(
    t,
    bearer(ann),
    UNKNOWN.flatMap((call) =>
      ['GET', 'POST'].map((method) => [call.replace('GET', method), 404, 'NOT_FOUND']),
    ),
  )
  for (const [path, operations] of Map.groupBy(DESCRIBED, (one) => one.path)) {
    const methods = operations.map(({ method }) => method)
    const allow = [...methods, ...(methods.includes('GET') ? ['HEAD'] : [])].toSorted().join(', ')
    for (const method of ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
      if (allow.split(', ').includes(method)) continue
      const answer = await root.api(method, path)
      refuses(t, answer, [405, 'METHOD_NOT_ALLOWED'], `${method} ${path}`)
      t.equal(answer.headers['allow'], allow)
    }
  }
  const forbidden = [403, 'FORBIDDEN', 'only admins may do this'] as const
  await refuse(
    t,
    bearer(ann),
    BELOW_ADMIN.map((call) => [call, ...forbidden]),
  )
  const put = (id: string, role: unknown) => {
    return { call: `PUT /admin/users/${id}/role`, body: { role } }
  }
  await refuse(t, bearer(root), [
    ['GET /admin/nothing', 404, 'NOT_FOUND'],
    [put('no-id', 'nothing'), 400, 'BAD_REQUEST'],
    [put(ID, 'Admin'), 400, 'INVALID_ROLE'],
    [put(bob.id, ['admin']), 400, 'BAD_REQUEST'],
    [put(ID, 'admin'), 404, 'NOT_FOUND'],
  ])
})

await t.test('HEAD is GET without its body', async (t) => {
  const { id } = await makeLink(root, 'headed', { tags: ['docs'] })
  const gets = CALLS.filter((call) => call.startsWith('GET ')).map((call) => call.slice(4))
  const common = { date: '', 'x-request-id': '' }
  for (const path of [...gets.map((of) => of.replace(ID, id)), '/config', '/nothing']) {
    const get = await root.api('GET', path)
    const head = await root.api('HEAD', path)
    t.same([head.status, head.text], [get.status, ''], `HEAD ${path}`)
    t.same({ ...head.headers, ...common }, { ...get.headers, ...common }, 'the same headers')
  }
})

await t.test('an extension of a browser may read replies, a page may not', async (t) => {
  const extension = `chrome-extension://${'abcdefghijklmnop'.repeat(2)}`
  const asks = {
    'access-control-request-method': 'POST',
    'access-control-request-headers': 'authorization,content-type',
  }
  /** What an answer with this status allows. */
  const allowed = async (status: number, path: string, headers: object, method = 'GET') => {
    const url = path.startsWith('/-/') ? base + path : `${base}/api/v1${path}`
    const sent = { method, headers: { ...headers } }
    const answer = await expectStatus(status, request(url, sent), `${method} ${path}`)
    const all = Object.entries(answer.headers)
    return Object.fromEntries(all.filter(([name]) => name.startsWith('access-control-')))
  }
  const own = { origin: extension }
  t.same(await allowed(204, '/links', { ...own, ...asks }, 'OPTIONS'), {
    'access-control-allow-origin': extension,
    'access-control-allow-methods': 'GET, POST, PUT, DELETE',
    'access-control-allow-headers': 'authorization, content-type, if-match',
    'access-control-max-age': '600',
  })
  // A token alone counts, and nothing that a browser adds.
  const named = { 'remote-email': ann.email, cookie: `token=${ann.token}` }
  for (const [path, headers, status] of [
    ['/links', bearer(ann), 200],
    ['/config', {}, 200],
    ['/links', named, 401],
    ['/nothing', bearer(ann), 404],
  ] as const) {
    const reply = await allowed(status, path, { ...own, ...headers })
    t.same(reply, { 'access-control-allow-origin': extension }, `${path} ${status}`)
  }
  for (const origin of [
    'https://evil.example',
    'null',
    base,
    `${extension}.evil.example`,
    'chrome-extension://short',
    `moz-extension://${ID}`,
  ]) {
    t.same(await allowed(401, '/links', { origin, ...asks }, 'OPTIONS'), {}, origin)
    t.same(await allowed(200, '/links', { origin, ...bearer(ann) }), {}, origin)
  }
  await allowed(401, '/links', own, 'OPTIONS')
  t.same(await allowed(200, '/-/', own), {}, 'pages')
})
