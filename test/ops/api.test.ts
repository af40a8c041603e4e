import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import { readOpenMetrics } from '../fixtures/open-metrics.ts'
import type { Config } from '../../services/ops/config.ts'
import { CHAT_KEY } from '../helpers/alerts.ts'
import { postgres } from '../helpers/backends.ts'
import { checkDocument } from '../helpers/document.ts'
import { request } from '../helpers/http.ts'
import { INSTANT, operationsOf } from '../helpers/api.ts'
import {
  ended,
  eventsOf,
  listOf,
  memoriesOf,
  sessionsOf,
  startOps,
  type Memory,
} from '../helpers/ops.ts'
import { ROOT } from '../helpers/program.ts'
import { expectStatus, refuseAll, refuses, type Refusal } from '../helpers/refusals.ts'

/** The contract's operations: the document has these, and no other. */
const OPERATIONS = `
GET /health
GET /sessions
GET /sessions/{id}
POST /sessions/trigger
GET /events
GET /memories
POST /memories
PUT /memories/{id}
DELETE /memories/{id}
GET /cooldowns
GET /config
PUT /config
POST /webhook
GET /checks
POST /checks
GET /checks/{id}
PUT /checks/{id}
DELETE /checks/{id}
POST /checks/{id}/run
GET /checks/{id}/history
GET /mutes
POST /mutes
DELETE /mutes/{id}
GET /approvals
POST /approvals/{id}
GET /pause
PUT /pause
GET /alerts
GET /alerts/{id}
POST /alerts/{id}/notes
GET /silences
POST /silences
DELETE /silences/{id}
GET /notices
GET /notices/targets
POST /notices/{id}/acknowledge`
  .trim()
  .split('\n')
const SCHEMAS = ['Session', 'Event', 'Memory', 'Cooldown', 'Config', 'Error']

const ops = await startOps(t, postgres, {
  OPS_BASE_URL: 'https://ops.example:8443',
  OPS_CHAT_API_KEY: CHAT_KEY,
  OPS_TIER2_MODEL: 'second',
  OPS_MAX_TIER: '2',
})
const { api, base } = ops
await ended(ops)
const config = async () => (await api<Config>('GET', '/config')).json
const memories = (query?: string) => memoriesOf(ops, query)
const state = async () => [await sessionsOf(ops), await memories(), await config()]
/** Nothing begins or changes by what is refused. */
const refuser = { service: 'ops', base: `${base}/api/v1`, state } as const

await t.test('health and metrics answer', async (t) => {
  const health = await expectStatus(200, request(`${base}/healthz`))
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  t.same(health.json(), { status: 'ok', database: 'ok', version })
  const metrics = await request(`${base}/metrics`)
  t.match(metrics, { status: 200, headers: { 'content-type': 'application/openmetrics-text' } })
  t.ok(readOpenMetrics(metrics.text).has('gatehouse_http_requests'))
  for (const path of ['/healthz', '/metrics']) {
    const response = await request(base + path, { method: 'POST' })
    t.match(response, { status: 405, headers: { allow: 'GET, HEAD' } }, path)
  }
})

await t.test('an unknown path and a wrong method match no route: 404 as JSON', async (t) => {
  const accept = { accept: 'text/html,application/xhtml+xml' }
  const unknown = ['/', '/Sessions', '/sessions/1/', '/sessions/1/stream', '/%zz'].flatMap(
    (path) => ['GET', 'POST'].map((method) => `${method} ${path}`),
  )
  const wrong = ['POST /health', 'DELETE /sessions/trigger', 'GET /memories/1', 'OPTIONS /config']
  const rows = [...unknown, ...wrong].map((call): Refusal => [call, 404])
  await refuseAll(t, { ...refuser, headers: accept }, rows)
  t.notOk((await api('PATCH', '/config')).headers.allow)
})

await t.test('no page of another site loads a page unseen; it may follow a link', async (t) => {
  const from = { 'sec-fetch-site': 'cross-site', accept: 'text/html' }
  const pages = ' sessions sessions/1 events memories alerts silences mutes approvals notices'
  for (const path of pages.split(' ')) {
    const load = (dest: string) =>
      request(`${base}/${path}`, { headers: { ...from, 'sec-fetch-dest': dest } })
    await expectStatus(403, load('image'), path)
    t.not((await load('document')).status, 403, path)
  }
})

await t.test('403 by a foreign name and from another site; the health is open', async (t) => {
  const body = { category: 'c', observation: 'o', prompt: 'look' }
  const changes = OPERATIONS.filter((call) => !/^GET|webhook/.test(call)).map((call) =>
    call.replace('{id}', '1'),
  )
  const sites = [
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { origin: 'https://evil.example' },
    { origin: 'null' },
  ]
  const paths = '/sessions /sessions/1 /events /memories /cooldowns /config /alerts /silences'
  await refuseAll(t, refuser, [
    ...paths.split(' ').map((path, at): Refusal => {
      const host = ['evil.example', '192.0.2.1', ''][at % 3] ?? ''
      return [{ call: `GET ${path}`, headers: { host } }, 403, /Host/]
    }),
    ...changes.map((call, at): Refusal => {
      const headers = sites[at % sites.length] ?? {}
      return [{ call, body, headers }, 403, /another site/]
    }),
  ])
  // Reading changes nothing.
  for (const headers of [{ host: 'OPS.example' }, ...sites]) {
    await expectStatus(200, api('GET', '/config', undefined, headers))
  }
  const foreign = { host: 'evil.example', 'sec-fetch-site': 'cross-site' }
  t.same((await api('GET', '/health', undefined, foreign)).json, { status: 'ok' })
})

await t.test('the document of the ops API', async (t) => {
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
    t.equal(webhook.join(' '), '202 400 401 413 500 502 503', 'of any type, from anywhere')
    t.match(document.components.securitySchemes, { bearer: { type: 'http', scheme: 'bearer' } })
  })

  t.test('describes everything once, with its schemas by their names', async (t) => {
    const { schemas, responses } = document.components
    const text = JSON.stringify({ paths: document.paths, responses })
    for (const name of SCHEMAS) t.ok(text.includes(`"#/components/schemas/${name}"`), name)
    const written = /prompt_text|"confidence"|last_action|tier1_model/
    t.notMatch(text, written, 'none is written out twice')
    t.same(Object.keys(schemas['Error']?.properties ?? {}), ['error'])
  })
})

/** A body with each of these values of a field; the refusal names the field. */
function wrongFields(
  call: string,
  body: object,
  values: Readonly<Record<string, readonly unknown[]>>,
) {
  return Object.entries(values).flatMap(([field, wrong]) =>
    wrong.map((value): Refusal => {
      return [{ call, body: { ...body, [field]: value } }, 400, undefined, new RegExp(field)]
    }),
  )
}

await t.test('configuration', async (t) => {
  const folder = `${ops.env['GATEHOUSE_DATA_DIR']}/ops`
  const usual = {
    interval: 3_600,
    tier1_model: 'default',
    tier2_model: 'second',
    tier3_model: 'default',
    dry_run: false,
    max_tier: 2,
    state_dir: `${folder}/state`,
    results_dir: `${folder}/results`,
    repos_dir: `${folder}/repos`,
  }
  t.same(await config(), usual)

  await t.test('400 for a bad field, and nothing of the others is applied', async (t) => {
    const others = { interval: 5, tier1_model: 'other', dry_run: false }
    const values = {
      interval: [0, 1.5, '60', null, [], 2_147_483_648],
      tier1_model: [' ', null, 7, 'x'.repeat(201), 'a\0b', 'a\nb', '-x'],
      tier2_model: [{}],
      tier3_model: [false],
      dry_run: ['true', 0, null],
    }
    await refuseAll(t, refuser, [
      ...wrongFields('PUT /config', others, values),
      [
        { call: 'PUT /config', body: { interval: 0 } },
        400,
        undefined,
        'interval must be a positive integer',
      ],
    ])
  })

  await t.test('what was saved wins over the settings of a new start', async (t) => {
    const models = { tier1_model: 'one', tier3_model: 'org/three:8b é' }
    await api('PUT', '/config', { ...usual, ...models, dry_run: true, interval: 2_147_483_647 })
    const now = await config()
    const later = await startOps(t, postgres, {
      ...ops.env,
      OPS_INTERVAL: '60',
      OPS_DRY_RUN: 'false',
      OPS_TIER1_MODEL: 'x',
      OPS_TIER2_MODEL: 'y',
      OPS_MAX_TIER: '1',
    })
    // The full body that was sent back has saved all five.
    t.same((await later.api('GET', '/config')).json, { ...now, max_tier: 1 })
    await later.server.stop()
  })
})

/** A change of a memory that is not there, or by what is no id. */
function refusedIds(method: string, body?: object): readonly Refusal[] {
  return (
    [
      ['1.5', 400, 'the memory id must be an integer'],
      ['1%00', 400, 'the memory id must be an integer'],
      ['999', 404, 'memory not found'],
      ['99999999999999999999999', 404, 'memory not found'],
    ] as const
  ).map(([id, status, text]) => [
    { call: `${method} /memories/${id}`, body },
    status,
    undefined,
    text,
  ])
}

await t.test('memories', async (t) => {
  t.same((await api('GET', '/memories')).json, { memories: [] })
  const add = async (body: object) => (await api<Memory>('POST', '/memories', body)).json
  const good = { category: 'any', observation: 'é 🙂\n' }

  await t.test('what can not be added', async (t) => {
    const values = {
      category: ['', 7, 'x'.repeat(101)],
      observation: [' ', 'x'.repeat(10_001), null, 'a\0b'],
      confidence: [1.01, -0.1, '0.5', null],
      active: ['yes', null],
      service: [7, '\0'],
    }
    await refuseAll(t, refuser, wrongFields('POST /memories', good, values))
  })

  await t.test('what is added and listed', async (t) => {
    const all = { service: 'db', category: 'timing', confidence: 1, active: false }
    const made = await add({ ...good, ...all, tier: 3, session_id: 1, id: 1 })
    t.match(made, { ...all, tier: 0, session_id: null })
    t.not((await add(good)).id, (await add(good)).id, 'always a new one')
    for (const query of ['service=web', 'service=%00', 'category=TIMING', "service='"]) {
      t.same(await memories(`?${query}`), [], query)
    }
    const twice = await api('GET', '/memories?limit=2&limit=3')
    refuses(t, twice, [400, undefined, 'limit may be given once.'])
  })

  await t.test('PUT: all three fields, the others stay; what is refused', async (t) => {
    const memory = await add({ ...good, service: 'web' })
    const path = `/memories/${memory.id}`
    const change = { observation: 'new', confidence: 0.35, active: false }
    const answer = await api<Memory>('PUT', path, { ...change, category: 'x' })
    t.same({ ...answer.json, updated_at: '' }, { ...memory, ...change, updated_at: '' })
    t.ok(answer.json.updated_at > memory.updated_at)
    const wrong = { observation: [[]], confidence: [[]], active: [[]] }
    await refuseAll(t, refuser, [
      ...wrongFields(`PUT ${path}`, change, wrong),
      ...refusedIds('PUT', change),
      ...refusedIds('DELETE'),
    ])
  })
})

await t.test('events and cooldowns', async (t) => {
  t.same((await api('GET', '/events')).json, { events: [] })
  t.same((await api('GET', '/cooldowns')).json, { cooldowns: [] })
  await ops.query(
    `insert into ops.events (session_id, level, service, message, created_at)
     select case when i % 2 = 0 then 1 end, (array['info', 'warning', 'critical'])[i % 3 + 1],
            case when i % 5 > 0 then 'service ' || i % 5 end, 'message ' || i, now() - i * interval '1 second'
       from generate_series(1, 1200) i`,
  )
  await ops.query(
    `insert into ops.actions (service, action_type, operation, at)
     select s, a, 'op', now() - h * interval '1 hour'
       from (values ('web', 'restart', 3), ('web', 'restart', 5), ('web', 'redeployment', 1), ('db', 'restart', 2),
                    ('old', 'restart', 25)) v(s, a, h)`,
  )
  const list = (query = '') => eventsOf(ops, query)

  await t.test('events: newest first, 100 without a limit, 1,000 at most', async (t) => {
    t.equal((await list()).length, 100)
    const [{ id, created_at, ...newest } = { id: 0, created_at: '' }, ...rest] =
      await list('?limit=1000')
    const service = 'service 1'
    t.same(newest, { message: 'message 1', level: 'warning', service, session_id: null })
    t.match([id, created_at], [/^\d+$/, INSTANT])
    t.equal(rest.length, 999)
    t.same((await list('?limit=99999')).slice(1), rest, 'over 1,000 counts as that')
    const times = rest.map((event) => event.created_at)
    t.same(times, times.toSorted().toReversed())
    t.same(await list('?limit=3&offset=50'), rest.slice(49, 52))
    t.equal((await list('?limit=1000&offset=1150')).length, 50)
  })

  await t.test('filters by level and service combine', async (t) => {
    t.equal((await list('?level=critical&limit=1000')).length, 400)
    const both = await list('?level=critical&service=service%202&limit=1000')
    t.equal(both.length, 80)
    t.ok(both.every(({ level, service }) => level === 'critical' && service === 'service 2'))
    for (const query of ['level=fatal', 'service=service', 'service=%00', 'level=Critical']) {
      t.same(await list(`?${query}`), [], query)
    }
  })

  await t.test('what no list takes', async (t) => {
    await refuseAll(t, refuser, [
      ['GET /events?limit=1e3', 400, undefined, 'limit must be a non-negative integer'],
      ['GET /memories?offset=1.5', 400, undefined, 'offset must be a non-negative integer'],
    ])
  })

  await t.test('cooldowns: the last 24 hours, the newest action first', async (t) => {
    const cooldowns = await listOf(ops, 'cooldowns')
    t.match(cooldowns, [
      { service: 'web', action_type: 'redeployment', count: 1, last_action: INSTANT },
      { service: 'db', action_type: 'restart', count: 1 },
      { service: 'web', action_type: 'restart', count: 2 },
    ])
    t.equal(cooldowns.length, 3)
  })
})

// The last one: what it breaks stays broken.
await t.test('500 says no more than that', async (t) => {
  await ops.query('alter table ops.memories rename to gone')
  for (const [method, body] of [['GET'], ['POST', { category: 'c', observation: 'o' }]] as const) {
    const answer = await api(method, '/memories', body, { accept: 'text/html' })
    refuses(t, answer, [500, undefined, 'internal server error'], method)
  }
  await expectStatus(200, api('GET', '/events'), 'the others answer')
})
