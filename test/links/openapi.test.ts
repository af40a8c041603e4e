import { t } from 'tap'
import { backends } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import { startLinks } from '../helpers/links.ts'
import { openApiOf, operationsOf } from '../helpers/api.ts'
import { lint } from '../runner/redocly.ts'

const [, postgres] = backends
const ID = '00000000-0000-4000-8000-000000000000'

/** The contract's operations: the document has these, and no other. */
const OPERATIONS = [
  ...['GET /config', 'GET /links', 'POST /links', 'GET /links/{id}', 'PUT /links/{id}'],
  ...['DELETE /links/{id}', 'GET /links/{id}/owners', 'POST /links/{id}/owners'],
  ...['DELETE /links/{id}/owners/{uid}', 'GET /links/{id}/shares', 'POST /links/{id}/shares'],
  ...['DELETE /links/{id}/shares/{uid}', 'GET /tags', 'GET /tags/{slug}/links', 'GET /users/me'],
  ...['GET /tokens', 'POST /tokens', 'DELETE /tokens/{id}', 'GET /admin/users'],
  ...['PUT /admin/users/{id}/role', 'GET /admin/links'],
]
const CONFIG = '#/paths/~1api~1v1~1config/get/responses'
const SCHEMAS = ['Link', 'Tag', 'User', 'Owner', 'Share', 'Token', 'Error']
/** decisions.md section 4. */
const CODES = {
  400: [
    ...['BAD_REQUEST', 'INVALID_SLUG', 'RESERVED_SLUG', 'INVALID_URL', 'INVALID_FIELD_LENGTH'],
    ...['INVALID_TAG', 'TOO_MANY_TAGS', 'INVALID_VISIBILITY', 'INVALID_ROLE'],
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

const links = await startLinks(t, postgres)
const { base } = links
const sent = await request(`${base}/api/openapi.yaml`)
const document = openApiOf(sent.text)

await t.test('is YAML that anybody may read, as the API is', async (t) => {
  t.equal(sent.status, 200)
  t.equal(sent.headers['content-type'], 'application/yaml')
  t.match(document, { openapi: /^3\.1\./, info: { title: /links/, version: /^\d/ } })
  t.match(document.servers, [{ url: base }, { url: '/' }])
  const elsewhere = await request(`${base}/api/openapi.yaml`, {
    headers: { host: 'go.example.com', 'sec-fetch-site': 'cross-site' },
  })
  t.equal(elsewhere.text, sent.text)
  const head = await request(`${base}/api/openapi.yaml`, { method: 'HEAD' })
  t.match(head, { status: 200, text: '' })
  t.equal(head.headers['content-length'], sent.headers['content-length'])
  const posted = await request(`${base}/api/openapi.yaml`, { method: 'POST' })
  t.match(posted, { status: 405, headers: { allow: 'GET, HEAD' } })
  t.equal(posted.json<{ code: string }>().code, 'METHOD_NOT_ALLOWED')
})

await t.test('passes redocly lint', async (t) => {
  const { code, problems } = await lint(t, sent.text)
  // The public configuration has no 4xx answer.
  const expected = [{ ruleId: 'operation-4xx-response', severity: 'warn', path: CONFIG }]
  t.same(problems, expected)
  t.equal(code, 0)
})

await t.test('has every operation of the contract, and no other', async (t) => {
  const operations = operationsOf(document)
  const names = operations.map(({ method, path }) => `${method} ${path}`)
  const wanted = OPERATIONS.map((name) => name.replace(' ', ' /api/v1'))
  t.same(names.toSorted(), wanted.toSorted())
  const ids = operations.map(({ operation }) => operation.operationId)
  t.equal(new Set(ids).size, OPERATIONS.length, 'operationIds are unique')
})

await t.test('each of them answers: 401 to a stranger, but the public one', async (t) => {
  const { token } = await links.user('ann', { admin: true })
  for (const { method, path, operation } of operationsOf(document)) {
    const url = base + path.replaceAll(/\{u?id\}/g, ID).replace('{slug}', 'none')
    const open = operation.security?.length === 0
    const stranger = await request(url, { method })
    t.equal(stranger.status, open ? 200 : 401, `${method} ${path}`)
    t.notOk(stranger.text.includes('nothing is served'))
    const known = await request(url, { method, headers: { authorization: `Bearer ${token}` } })
    t.ok(String(known.status) in operation.responses, `${method} ${path} → ${known.status}`)
    t.notOk(known.text.includes('nothing is served'), 'it is there')
  }
})

await t.test('describes ETag and If-Match', async (t) => {
  const { get, put, delete: remove } = document.paths['/api/v1/links/{id}'] ?? {}
  const required = { required: true, schema: { type: 'string' } }
  for (const operation of [get, put]) {
    t.match(operation?.responses['200'], { headers: { ETag: required } })
  }
  for (const operation of [put, remove]) {
    const header = { name: 'If-Match', in: 'header', required: false, schema: { type: 'string' } }
    t.match(operation, { parameters: [{ name: 'id' }, header] })
  }
})

await t.test('describes everything once, with the codes of each status', async (t) => {
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
  for (const name of SCHEMAS.filter((schema) => !['Owner', 'Tag', 'Error'].includes(schema))) {
    t.ok(text.includes(`"#/components/schemas/${name}`), `${name} is referred to`)
  }
  t.notMatch(text, /is_primary|link_count|display_name/, 'no schema is written out twice')
})

await t.test('servers: the public address, and the one it is read from', async (t) => {
  const configured = 'https://go.example.com'
  const named = await startLinks(t, postgres, { ...links.env, LINKS_BASE_URL: configured })
  const { servers } = openApiOf((await request(`${named.base}/api/openapi.yaml`)).text)
  t.match(servers, [{ url: configured }, { url: '/' }])
})

await t.test('the explorer: guarded, from our own origin, nothing inline', async (t) => {
  const moved = await request(`${base}/api/docs`)
  t.match(moved, { status: 308, headers: { location: '/api/docs/' } })
  const page = await request(`${base}/api/docs/`)
  t.match(page, { status: 200, headers: { 'content-type': 'text/html; charset=utf-8' } })
  const policy = page.headers['content-security-policy'] ?? ''
  t.match(policy, /^default-src 'none'; script-src 'self'; style-src 'self';/)
  t.match(policy, /connect-src 'self'.*frame-ancestors 'none'/)
  t.notMatch(policy, /unsafe|https?:|\*/)
  t.notMatch(page.text, /<script(?![^>]*src=)|<style|\sstyle=|\son\w+=|https?:\/\//)

  const files = [...page.text.matchAll(/(?:src|href)="(\/[^"]+)"/g)].map(([, path = '']) => path)
  t.equal(files.length, 5)
  for (const path of files) {
    const first = await request(base + path)
    t.equal(first.status, 200, path)
    const again = await request(base + path, {
      headers: { 'if-none-match': first.headers.etag ?? '' },
    })
    t.match(again, { status: 304, text: '' }, path)
    const foreign = await request(base + path, { headers: { host: 'evil.example' } })
    t.equal(foreign.status, 403, `${path} by another name`)
  }
  for (const path of ['/api/docs', '/api/docs/']) {
    const foreign = await request(base + path, { headers: { host: 'evil.example' } })
    t.equal(foreign.status, 403, `${path} by another name`)
  }
  const nothing = await request(`${base}/api/docs/nothing`)
  t.equal(nothing.status, 404)
  t.equal(nothing.json<{ code: string }>().code, 'NOT_FOUND')
})
