import { t } from 'tap'
import { apiOf, openApiOf, operationsOf, type Api } from '../helpers/api.ts'
import { backends } from '../helpers/backends.ts'
import { addProvider, post, type Ack } from '../helpers/hooks.ts'
import { request } from '../helpers/http.ts'
import { linksServer } from '../helpers/links.ts'
import { inventoryFile } from '../helpers/ops.ts'
import { refuseAll, type Refusal } from '../helpers/refusals.ts'
import { secret } from '../helpers/secrets.ts'
import { startServer } from '../helpers/server.ts'
import { until } from '../helpers/until.ts'

// A member that is spelled wrong is refused where a contract does not say otherwise (decisions.md section 7).

const [, postgres] = backends
const key = secret('chat-key')
const env = {
  ...(await postgres.env(t)),
  OPS_INVENTORY: await inventoryFile(t, { services: [] }),
  OPS_CHAT_API_KEY: key,
}
const server = await startServer(t, { env })
const { hooks, links, ops } = server
await addProvider(hooks, 'ci', { open: true })
const event = (await post(hooks, 'generic/ci', '{}')).json<Ack>().id

/** What an API that is ours alone takes, and a member that it does not have. */
const REFUSED: readonly (readonly [call: string, body: object])[] = [
  ['POST /api/v1/destinations', { name: 'erp', url: 'https://example.com/', evnt_types: 'push' }],
  ['PUT /api/v1/destinations/erp/enabled', { enabled: true, evnt_types: 1 }],
  ['PUT /api/v1/destinations/erp', { url: 'https://example.com/', evnt_types: 1 }],
  ['POST /api/v1/destinations/erp/retry', { evnt_types: null }],
  [`POST /api/v1/events/${event}/replay`, { target_url: 'https://example.com/', evnt_types: 1 }],
  ['POST /api/v1/searches', { name: 'pushes', query: 'q=push', evnt_types: 1 }],
  ['PUT /api/v1/searches/1', { name: 'pushes', evnt_types: 1 }],
  ['POST /api/v1/events/replay', { dry_run: true, evnt_types: 'push' }],
]

await t.test('hooks: each body is refused with 422 and the name of the member', async (t) => {
  const made = await apiOf(hooks)('POST', '/destinations', {
    name: 'erp',
    url: 'https://example.com/',
  })
  t.equal(made.status, 201, 'without it')
  const rows = REFUSED.map(([call, body]): Refusal => [
    { call, body },
    422,
    undefined,
    /^evnt_types is not known; the body takes [a-z_, ]+\.$/,
  ])
  const long = { ['x'.repeat(10_000)]: 1 }
  const state = async () => (await apiOf(hooks)('GET', '/destinations')).json
  await refuseAll(t, { service: 'hooks', base: hooks, state }, [
    ...rows,
    [
      { call: 'POST /api/v1/destinations/erp/retry', body: long },
      422,
      undefined,
      /^x{100} is not/,
    ],
    [
      { call: 'POST /api/v1/destinations', body: '{"name":"a","__proto__":1}' },
      422,
      undefined,
      /^__proto__ is not known/,
    ],
  ])
})

/** The same of ops, where a wrong member is 400, as anything else that is wrong in a body. */
const REFUSED_BY_OPS: readonly (readonly [call: string, body: object])[] = [
  ['POST /api/v1/checks', { service: 'shop', check: { type: 'memory' }, evnt_types: 1 }],
  ['PUT /api/v1/checks/1', { check: { type: 'memory' }, evnt_types: 1 }],
  ['PUT /api/v1/pause', { repairs: true, evnt_types: 1 }],
  ['POST /api/v1/approvals/1', { decision: 'approve', evnt_types: 1 }],
  ['POST /api/v1/alerts/1/notes', { text: 'a power cut', evnt_types: 1 }],
  ['POST /api/v1/mutes', { for: '1h', reason: 'moving', evnt_types: 1 }],
  ['POST /api/v1/silences', { match: { service: 'shop' }, reason: 'moving', evnt_types: 1 }],
]

await t.test('ops: each body is refused with 400 and the name of the member', async (t) => {
  await postgres.query(
    env,
    `insert into ops.approvals (service, operation, argv, reason, created_at, expires_at)
     values ('shop', 'restart', '[]', '', now(), now() + interval '1 hour')`,
  )
  await postgres.query(
    env,
    `with alert as (insert into ops.alerts (fingerprint, content, first_seen, last_seen, outcome)
                    values ('f', 'c', now(), now(), 'triggered') returning id)
     insert into ops.alert_texts (alert_id, content, title, payload, first_seen, last_seen)
     select id, 'c', 'Down', '{}', now(), now() from alert`,
  )
  const made = await apiOf(ops)('POST', '/checks', { service: 'shop', check: { type: 'memory' } })
  t.equal(made.status, 201, 'without it')
  const state = async () => [
    (await apiOf(ops)('GET', '/mutes')).json,
    (await apiOf(ops)('GET', '/silences')).json,
    (await apiOf(ops)('GET', '/checks/1')).status,
    (await apiOf(ops)('GET', '/approvals')).json,
    (await apiOf(ops)('GET', '/alerts/1')).json,
  ]
  await refuseAll(
    t,
    { service: 'ops', base: ops, state },
    REFUSED_BY_OPS.map(([call, body]): Refusal => {
      return [
        { call, body },
        400,
        undefined,
        /^evnt_types is not known; the body takes [a-z_, ]+\.?$/,
      ]
    }),
  )
})

await t.test('the documents say which bodies take no other members', async (t) => {
  const strict: string[] = []
  for (const base of [hooks, links, ops]) {
    const { text } = await request(`${base}/api/openapi.yaml`)
    const document = openApiOf(text)
    for (const { method, path, operation } of operationsOf(document)) {
      const { requestBody } = operation as { requestBody?: Body }
      const schema = requestBody?.content['application/json']?.schema
      const name = schema?.$ref?.split('/').at(-1) ?? ''
      const shown = (document.components.schemas[name] ?? schema) as Closed | undefined
      if (shown?.additionalProperties !== false) continue
      strict.push(`${method} ${path}`)
      const status = base === ops ? '400' : '422'
      t.ok(status in operation.responses, `${method} ${path} names ${status}`)
    }
  }
  const named = [...REFUSED, ...REFUSED_BY_OPS].map(([call]) =>
    call
      .replace(/\/erp\b/, '/{name}')
      .replace(`/${event}/`, '/{id}/')
      .replace(/\/1(?=\/|$)/, '/{id}'),
  )
  t.same(strict.toSorted(), named.toSorted())
})

type Closed = { readonly additionalProperties?: boolean }
type Body = {
  readonly content: Readonly<Record<string, { readonly schema: Closed & { $ref?: string } }>>
}

/** What the contracts name takes what it does not know, as it always did. */
async function takes(api: Api, rows: readonly (readonly [string, object, number])[]) {
  const answers: string[] = []
  for (const [call, body, status] of rows) {
    const [method = '', path = ''] = call.split(' ')
    const sent = { ...body, evnt_types: 'push' }
    await until(
      async () => (await api(method, path, sent)).status === status,
      `${call} to answer ${status}`,
    )
    answers.push(call)
  }
  return answers
}

await t.test('links and ops take them where their contracts name the body', async (t) => {
  const admin = await linksServer(server, env).user('ann', { admin: true })
  const other = await linksServer(server, env).user('bob')
  const link = { slug: 'docs', url: 'https://example.com/' }
  const made = await admin.api<{ id: string }>('POST', '/links', { ...link, evnt_types: 1 })
  t.equal(made.status, 201)
  const taken = await takes(admin.api, [
    [`PUT /links/${made.json.id}`, link, 200],
    [`POST /links/${made.json.id}/owners`, { email: other.email }, 201],
    [`POST /links/${made.json.id}/shares`, { email: other.email }, 201],
    ['POST /tokens', { name: 'laptop' }, 201],
    [`PUT /admin/users/${other.id}/role`, { role: 'user' }, 200],
  ])
  t.equal(taken.length, 5)

  const memory = { category: 'timing', observation: 'slow', confidence: 0.5, active: true }
  const bearer = apiOf(ops, key)
  await takes(bearer, [
    ['POST /memories', memory, 201],
    ['PUT /memories/1', memory, 200],
    ['PUT /config', { interval: 1_800, max_tier: 1 }, 200],
    // No model makes a brief of it.
    ['POST /webhook', { problem: 'down' }, 502],
    ['POST /sessions/trigger', { prompt: 'Look.' }, 201],
  ])
})
