import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import type { Test } from 'tap'
import { readOpenMetrics } from '../fixtures/open-metrics.ts'
import { CHAT_KEY } from '../helpers/alerts.ts'
import { backends } from '../helpers/backends.ts'
import { checkDocument } from '../helpers/document.ts'
import { request } from '../helpers/http.ts'
import { operationsOf } from '../helpers/api.ts'
import { ended, startOps } from '../helpers/ops.ts'
import { ROOT } from '../helpers/program.ts'
import { refuseAll, refuses } from '../helpers/refusals.ts'
import type { Refusal } from '../helpers/refusals.ts'

/** The contract's operations: the document has these, and no other. */
const OPERATIONS = [
  ...['GET /health', 'GET /sessions', 'GET /sessions/{id}', 'POST /sessions/trigger'],
  ...['GET /events', 'GET /memories', 'POST /memories', 'PUT /memories/{id}'],
  ...['DELETE /memories/{id}', 'GET /cooldowns', 'GET /config', 'PUT /config', 'POST /webhook'],
  ...['GET /checks', 'POST /checks', 'GET /checks/{id}', 'PUT /checks/{id}'],
  ...['DELETE /checks/{id}', 'POST /checks/{id}/run', 'GET /checks/{id}/history'],
  ...['GET /mutes', 'POST /mutes', 'DELETE /mutes/{id}'],
  ...['GET /approvals', 'POST /approvals/{id}', 'GET /pause', 'PUT /pause'],
  ...[
    'GET /alerts',
    'GET /alerts/{id}',
    'POST /alerts/{id}/notes',
    'GET /silences',
    'POST /silences',
    'DELETE /silences/{id}',
  ],
  ...['GET /notices', 'GET /notices/targets', 'POST /notices/{id}/acknowledge'],
]
const SCHEMAS = ['Session', 'Event', 'Memory', 'Cooldown', 'Config', 'Error']

const [, postgres] = backends
const ops = await startOps(t, postgres, {
  ...{ OPS_BASE_URL: 'https://ops.example:8443', OPS_CHAT_API_KEY: CHAT_KEY },
})
const { api, base } = ops
await ended(ops)
/** Nothing begins by what is refused. */
const refuser = {
  service: 'ops',
  base: `${base}/api/v1`,
  state: async () => (await api('GET', '/sessions')).json,
} as const
const paths = [
  ...['/sessions', '/sessions/1', '/events', '/memories', '/cooldowns', '/config', '/alerts'],
  '/silences',
]

await t.test('health and metrics answer', async (t) => {
  const health = await request(`${base}/healthz`)
  t.equal(health.status, 200)
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  t.same(health.json(), { status: 'ok', database: 'ok', version })
  const api = await request(`${base}/api/v1/health`)
  t.match(api, { status: 200, headers: { 'content-type': 'application/json' } })
  t.same(api.json(), { status: 'ok' })
  const head = await request(`${base}/api/v1/health`, { method: 'HEAD' })
  t.match({ status: head.status, size: head.body.length }, { status: 200, size: 0 })
  const metrics = await request(`${base}/metrics`)
  t.match(metrics, { status: 200, headers: { 'content-type': /^application\/openmetrics-text/ } })
  t.ok(readOpenMetrics(metrics.text).has('gatehouse_http_requests'))
  for (const path of ['/healthz', '/metrics']) {
    const response = await request(base + path, { method: 'POST' })
    t.match(response, { status: 405, headers: { allow: 'GET, HEAD' } }, path)
    t.same(Object.keys(response.json<object>()), ['error'])
  }
})

await t.test('an unknown path and a wrong method match no route: 404 as JSON', async (t) => {
  const accept = { accept: 'text/html,application/xhtml+xml' }
  const unknown = [
    ...['/', '/nothing', '/Sessions', '/sessions/', '/sessions/1/', '/sessions/1/stream'],
    ...['/config/more', '/memories/1/x', '//sessions', '/health/', '/%zz', '/sessions/%zz'],
  ].flatMap((path) => ['GET', 'POST', 'DELETE'].map((method) => `${method} ${path}`))
  const wrong = [
    ...['POST /health', 'PUT /health', 'DELETE /health', 'POST /sessions', 'PUT /sessions'],
    ...['DELETE /sessions', 'PATCH /sessions', 'DELETE /sessions/trigger', 'DELETE /sessions/1'],
    ...['POST /events', 'PUT /memories', 'GET /memories/1', 'POST /memories/1'],
    ...['POST /cooldowns', 'POST /config', 'PATCH /config', 'OPTIONS /config'],
  ]
  const rows = [...unknown, ...wrong].map((call): Refusal => [call, 404])
  await refuseAll(t, { ...refuser, headers: accept }, rows)
  t.notOk((await api('PATCH', '/config')).headers.allow)
})

await t.test('HEAD is GET without its body', async (t) => {
  for (const path of ['/health', ...paths, '/sessions/x', '/nothing']) {
    const [get, head] = [await api('GET', path), await api('HEAD', path)]
    t.same([head.status, head.text], [get.status, ''], path)
    t.equal(head.headers['content-length'], get.headers['content-length'])
  }
})

await t.test('no page of another site loads a page unseen; it may follow a link', async (t) => {
  const from = { 'sec-fetch-site': 'cross-site', accept: 'text/html' }
  for (const path of [
    '/',
    '/sessions',
    '/sessions/1',
    '/events',
    '/memories',
    '/alerts',
    '/silences',
    '/mutes',
    '/approvals',
    '/notices',
  ]) {
    const load = (dest: string) =>
      request(base + path, { headers: { ...from, 'sec-fetch-dest': dest } })
    t.equal((await load('image')).status, 403, path)
    t.not((await load('document')).status, 403, path)
  }
})

await t.test('403 by a foreign name and from another site; the health is open', async (t) => {
  const body = { category: 'c', observation: 'o', prompt: 'look' }
  const changes = [
    ...['POST /memories', 'POST /sessions/trigger', 'PUT /config', 'PUT /memories/1'],
    ...['DELETE /memories/1', 'POST /checks', 'POST /checks/1/run', 'POST /mutes'],
    ...['POST /approvals/1', 'PUT /pause'],
    ...['POST /silences', 'DELETE /silences/1', 'POST /alerts/1/notes'],
    'POST /notices/1/acknowledge',
  ]
  const sites = [
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { origin: 'https://evil.example' },
    { origin: 'null' },
  ]
  await refuseAll(t, refuser, [
    ...paths.flatMap((path) =>
      ['evil.example', 'ops.example.evil', '192.0.2.1', ''].map((host): Refusal => {
        return [{ call: `GET ${path}`, headers: { host } }, 403, undefined, /Host/]
      }),
    ),
    ...sites.flatMap((headers) =>
      changes.map((call): Refusal => [{ call, body, headers }, 403, undefined, /another site/]),
    ),
  ])
  for (const path of paths) {
    t.equal((await api('GET', path, undefined, { host: 'OPS.example' })).status, 200)
  }
  for (const headers of sites) {
    const { status } = await api('GET', '/config', undefined, headers)
    t.equal(status, 200, 'reading changes nothing')
  }
  const foreign = { host: 'evil.example', 'sec-fetch-site': 'cross-site' }
  t.same((await api('GET', '/health', undefined, foreign)).json, { status: 'ok' })
})

await t.test('the document of the ops API', async (t: Test) => {
  const document = await checkDocument(t, base, {
    operations: OPERATIONS.map((name) => name.replace(' ', ' /api/v1')),
    unrefused: '/api/v1/health',
  })
  t.match(document.servers, [{ url: 'https://ops.example:8443' }, { url: '/' }])

  t.test('the webhook alone needs a key', async (t) => {
    const closed = operationsOf(document).filter(
      ({ operation }) => operation.security?.length !== 0,
    )
    t.match(closed, [{ method: 'POST', path: '/api/v1/webhook' }])
    t.equal(closed.length, 1)
    const webhook = Object.keys(document.paths['/api/v1/webhook']?.['post']?.responses ?? {})
    t.same(
      webhook,
      ['202', '400', '401', '413', '500', '502', '503'],
      'of any type, from anywhere',
    )
    t.match(document.components.securitySchemes, { bearer: { type: 'http', scheme: 'bearer' } })
  })

  t.test('describes everything once, with its schemas by their names', async (t) => {
    const { schemas, responses } = document.components
    for (const name of SCHEMAS) t.type(schemas[name]?.properties, 'object', name)
    const text = JSON.stringify({ paths: document.paths, responses })
    for (const name of SCHEMAS) t.ok(text.includes(`"#/components/schemas/${name}"`), name)
    t.notMatch(
      text,
      /prompt_text|"confidence"|last_action|tier1_model/,
      'none is written out twice',
    )
    t.same(Object.keys(schemas['Error']?.properties ?? {}), ['error'])
  })

  t.test('has the bounds of the configuration', async (t) => {
    t.match(document.components.schemas['Config']?.properties, {
      interval: { minimum: 1, maximum: 2_147_483_647 },
      tier1_model: { minLength: 1, maxLength: 200 },
    })
  })
})

// The last one: what it breaks stays broken.
await t.test('500 says no more than that', async (t) => {
  await postgres.query(ops.env, 'alter table ops.memories rename to gone')
  for (const [method, body] of [['GET'], ['POST', { category: 'c', observation: 'o' }]] as const) {
    const answer = await api(method, '/memories', body, { accept: 'text/html' })
    refuses(t, answer, [500, undefined, 'internal server error'], method)
    t.same(answer.json, { error: 'internal server error' })
  }
  t.equal((await api('GET', '/events')).status, 200, 'the others answer')
})
