import { t } from 'tap'
import { backends } from '../helpers/backends.ts'
import { checkDocument } from '../helpers/document.ts'
import { request } from '../helpers/http.ts'
import { startLinks } from '../helpers/links.ts'
import { openApiOf, operationsOf } from '../helpers/api.ts'

const [, postgres] = backends

/** The document has these operations, and no other: those of the contract, and after them the added ones. */
const OPERATIONS = [
  ...['GET /config', 'GET /links', 'POST /links', 'GET /links/{id}', 'PUT /links/{id}'],
  ...['DELETE /links/{id}', 'GET /links/{id}/owners', 'POST /links/{id}/owners'],
  ...['DELETE /links/{id}/owners/{uid}', 'GET /links/{id}/shares', 'POST /links/{id}/shares'],
  ...['DELETE /links/{id}/shares/{uid}', 'GET /tags', 'GET /tags/{slug}/links', 'GET /users/me'],
  ...['GET /tokens', 'POST /tokens', 'DELETE /tokens/{id}', 'GET /admin/users'],
  ...['PUT /admin/users/{id}/role', 'GET /admin/links'],
  ...['GET /links/{id}/history', 'POST /links/{id}/history/{change}/restore'],
  ...['GET /links/{id}/stats', 'PUT /links/{id}/owner', 'PUT /admin/users/{id}/disabled'],
  ...['GET /deleted-links', 'POST /links/{id}/restore', 'GET /checked-links'],
  ...['GET /links/{id}/check', 'PUT /links/{id}/check', 'GET /admin/missing-slugs'],
  'PUT /links/{id}/slug',
]
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
const document = await checkDocument(t, base, {
  operations: OPERATIONS.map((name) => name.replace(' ', ' /api/v1')),
  unrefused: '/api/v1/config',
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
  t.match(document.servers, [{ url: base }, { url: '/' }])
  const configured = 'https://go.example.com'
  const named = await startLinks(t, postgres, { ...links.env, LINKS_BASE_URL: configured })
  const { servers } = openApiOf((await request(`${named.base}/api/openapi.yaml`)).text)
  t.match(servers, [{ url: configured }, { url: '/' }])
})
