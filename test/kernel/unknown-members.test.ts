import { t, type Test } from 'tap'
import {
  apiOf,
  openApiOf,
  operationsOf,
  type Api,
  type Described,
  type Document,
} from '../helpers/api.ts'
import { postgres } from '../helpers/backends.ts'
import { accepted, addProvider, post } from '../helpers/hooks.ts'
import { request } from '../helpers/http.ts'
import { linksServer } from '../helpers/links.ts'
import { inventoryFile } from '../helpers/ops.ts'
import { refuseAll, type Refusal } from '../helpers/refusals.ts'
import { secret } from '../helpers/secrets.ts'
import { startServer, type Service } from '../helpers/server.ts'
import { until } from '../helpers/until.ts'

// A member that is spelled wrong is refused where a contract does not say otherwise, and so is a
// read-only member that differs (decisions.md section 7).

const key = secret('chat-key')
const env = {
  ...(await postgres.env(t)),
  OPS_INVENTORY: await inventoryFile(t, { services: [] }),
  OPS_CHAT_API_KEY: key,
}
const server = await startServer(t, { env })
const { hooks, links, ops } = server
await addProvider(hooks, 'ci', { open: true })
const event = await accepted(post(hooks, 'generic/ci', '{}'))

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
  const erp = { name: 'erp', url: 'https://example.com/' }
  t.equal((await apiOf(hooks)('POST', '/destinations', erp)).status, 201, 'without it')
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
    [{ call: 'POST /api/v1/searches', body: long }, 422, /^x{100} is not/],
    [{ call: 'POST /api/v1/searches', body: '{"__proto__":1}' }, 422, /^__proto__ is/],
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
  const api = apiOf(ops)
  const made = await api('POST', '/checks', { service: 'shop', check: { type: 'memory' } })
  t.equal(made.status, 201, 'without it')
  const lists = ['/mutes', '/silences', '/approvals', '/alerts/1']
  const state = () => Promise.all(lists.map(async (path) => (await api('GET', path)).json))
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
      const shown = bodyOf(document, operation)
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

type Closed = {
  additionalProperties?: boolean
  properties?: Readonly<Record<string, { readOnly?: boolean }>>
}
type Body = {
  content: Readonly<Record<string, { schema: Closed & { $ref?: string } }>>
}

/** What an operation takes, by its document. */
function bodyOf(document: Document, operation: Described) {
  const { requestBody } = operation as { requestBody?: Body }
  const schema = requestBody?.content['application/json']?.schema
  const name = schema?.$ref?.split('/').at(-1) ?? ''
  return (document.components.schemas[name] as Closed | undefined) ?? schema
}

/** What the contracts name takes what it does not know, as it always did. */
async function takes(t: Test, api: Api, rows: readonly (readonly [string, object, number])[]) {
  for (const [call, body, status] of rows) {
    const [method = '', path = ''] = call.split(' ')
    t.equal((await api(method, path, { ...body, evnt_types: 'push' })).status, status, call)
  }
}

await t.test('links and ops take them where their contracts name the body', async (t) => {
  const admin = await linksServer(server, env).user('ann', { admin: true })
  const other = await linksServer(server, env).user('bob')
  const link = { slug: 'docs', url: 'https://example.com/' }
  const made = await admin.api<{ id: string }>('POST', '/links', { ...link, evnt_types: 1 })
  await takes(t, admin.api, [
    [`PUT /links/${made.json.id}`, link, 200],
    [`POST /links/${made.json.id}/owners`, { email: other.email }, 201],
    [`POST /links/${made.json.id}/shares`, { email: other.email }, 201],
    [`PUT /admin/users/${other.id}/role`, { role: 'user' }, 200],
  ])

  const memory = { category: 'timing', observation: 'slow', confidence: 0.5, active: true }
  await takes(t, apiOf(ops, key), [
    ['POST /memories', memory, 201],
    ['PUT /memories/1', memory, 200],
    ['PUT /config', { interval: 1_800, max_tier: 1 }, 200],
  ])
  // While the session of the start runs, no other one begins.
  const trigger = { prompt: 'Look.', evnt_types: 1 }
  const begun = async () => (await apiOf(ops)('POST', '/sessions/trigger', trigger)).status === 201
  await until(begun, 'a session')
})

/** Read-only members that are ignored when they differ: they change by themselves, or by contract. */
const MAY_DIFFER: Readonly<Record<string, string>> = {
  '/destinations/{name}':
    'dead delivered failing gap gap_through last_at last_detail last_status mean_ms oldest_at position ' +
    'waiting',
  '/searches/{id}': '',
  '/links/{id}': 'slug updated_at',
  '/links/{id}/check': 'checkable checked_at problem since state status',
  '/config': 'max_tier repos_dir results_dir state_dir',
  '/memories/{id}': 'category created_at id service session_id tier updated_at',
  '/checks/{id}': 'last_message since state',
}

await t.test(
  'what GET gives, PUT takes: read-only members are unchanged, or refused',
  async (t) => {
    await apiOf(hooks)('POST', '/searches', { name: 'pushes', query: 'q=push' })
    const { token } = await linksServer(server, env).user('cleo')
    await apiOf(links, token)('POST', '/links', { slug: 'wiki', url: 'https://example.com/' })
    const bases = [
      { service: 'hooks', base: hooks, token: undefined },
      { service: 'links', base: links, token },
      { service: 'ops', base: ops, token: key },
    ] as const
    const walked: string[] = []
    for (const listener of bases) {
      const document = openApiOf((await request(`${listener.base}/api/openapi.yaml`)).text)
      for (const { method, path: whole, operation } of operationsOf(document)) {
        const path = whole.replace('/api/v1', '')
        const { get } = document.paths[whole] ?? {}
        // The switch of pauses takes what to pause; since when and by whom it is paused are its own.
        const isThing = method === 'PUT' && (get !== undefined || path.endsWith('}'))
        if (!isThing || path === '/pause') continue
        walked.push(path)
        const body = bodyOf(document, operation) ?? {}
        await t.test(path, async (t) => {
          const { address, read } = await thingAt(apiOf(listener.base, listener.token), path)
          await takesItself(t, listener, {
            address,
            read,
            body,
            mayDiffer: MAY_DIFFER[path]?.match(/\w+/g) ?? [],
          })
        })
      }
    }
    t.same(walked.toSorted(), Object.keys(MAY_DIFFER).toSorted())
  },
)

type Thing = Readonly<Record<string, unknown>>

/** The first thing of a path, such as `/checks/{id}`, by GET of itself or else of its list. */
async function thingAt(api: Api, path: string) {
  const [list = '', parameter, rest = ''] = path.split(/\/\{(\w+)\}/)
  const first = async () => {
    const { json } = await api<Thing>('GET', list)
    return Object.values(json).find(Array.isArray)?.[0] ?? {}
  }
  const address = parameter === undefined ? list : `${list}/${(await first())[parameter]}${rest}`
  const read = async () => {
    const { status, json } = await api<Thing>('GET', address)
    return status === 200 ? json : await first()
  }
  return { address, read }
}

type Listener = {
  service: Service
  base: string
  token: string | undefined
}
type Replaceable = {
  address: string
  read: () => Promise<Thing>
  body: Closed
  mayDiffer: readonly string[]
}

/** PUT takes what GET gives; each of its read-only members with another value is ignored or refused. */
async function takesItself(
  t: Test,
  { service, base, token }: Listener,
  { address, read, body, mayDiffer }: Replaceable,
) {
  const api = apiOf(base, token)
  const stable = async () => {
    const members = Object.entries(await read())
    return members.filter(([name]) => name !== 'version' && !mayDiffer.includes(name))
  }
  const before = await stable()
  const thing = await read()
  t.equal((await api('PUT', address, thing)).status, 200, 'it is taken')
  t.same(await stable(), before, 'it is as before')

  const { properties = {}, additionalProperties } = body
  const undescribed = Object.keys(thing).filter((name) => !(name in properties))
  if (additionalProperties === false) t.same(undescribed, [], 'the document names all')
  const readOnly = Object.keys(thing).filter((name) => {
    return undescribed.includes(name) || properties[name]?.readOnly === true
  })
  for (const name of mayDiffer) {
    t.ok(readOnly.includes(name), `${name} is read-only`)
    const answer = await api('PUT', address, { ...(await read()), [name]: 'other' })
    t.equal(answer.status, 200, `${name} is ignored`)
    t.match(answer.headers['ignored-members'], new RegExp(`\\b${name}\\b`), 'and named')
  }
  const present = await read()
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
  const status = service === 'hooks' ? 422 : 400
  const code = service === 'links' ? 'BAD_REQUEST' : undefined
  const refused = readOnly.filter((name) => !mayDiffer.includes(name))
  await refuseAll(
    t,
    { service, base, headers, state: stable },
    refused.map((name): Refusal => {
      const call = { call: `PUT /api/v1${address}`, body: { ...present, [name]: 'other' } }
      return [call, status, code, new RegExp(`^${name} is read-only: `)]
    }),
  )
}
