import fc from 'fast-check'
import { t } from 'tap'
import * as Type from '../../kernel/schema.ts'
import type { HooksRoutes } from '../../routes/hooks/kit.ts'
import { hooksRoutes } from '../../routes/hooks/routes.ts'
import { apiOf } from '../helpers/api.ts'
import { eachBackend } from '../helpers/backends.ts'
import {
  addProvider,
  deliver,
  enable,
  eventIds,
  post,
  postForm,
  SECRETS,
  SIGNED,
  signatureHeaders,
  startHooksProcess,
} from '../helpers/hooks.ts'
import { rawExchange } from '../helpers/http.ts'
import { META, addEndpoint, modern } from '../helpers/mcp.ts'
import { addSigned, change, secretKey, sendStandard, standardHeaders } from '../helpers/senders.ts'
import { RPC_FAULT, toolCalls, toolHeaders, fuzz, INERT, UNWATCHED, type Sent } from './fuzz.ts'
import { MARKER, oddCursor } from './fuzz-values.ts'

/** But for the confirmation of a subscription, which Amazon has signed. */
const ROUTES = hooksRoutes(INERT as HooksRoutes).filter(({ path }) => path !== '/log/:id/confirm')

/** hooks.md section 7. */
const FAULT = Type.Object(
  {
    type: Type.Literal('about:blank'),
    title: Type.String(),
    detail: Type.String(),
    status: Type.Integer({ minimum: 400 }),
    instance: Type.String(),
  },
  { additionalProperties: false },
)
const Delivery = Type.Partial(
  Type.Object({
    id: Type.String(),
    event_id: Type.Integer(),
    payload: Type.Unknown(),
    type: Type.Enum(['push', 'kept', 'url_verification', MARKER]),
    challenge: Type.Union([Type.String(), Type.Null()]),
  }),
)
const SCHEME_PARTS = [
  'topics',
  'issuer',
  'audience',
  'subject',
  'answer_status',
  'answer_type',
  'answer_body',
  'header',
  'prefix',
  'signed_text',
  'timestamp_header',
  'event_type_header',
  'event_type_json',
  'id_header',
]
/** Nobody listens there. */
const NOBODY = 'http://127.0.0.1:9/hook'
/** A member that is left out. */
const nothing = fc.constant(undefined)
/** A forwarder connects. */
const HANDSHAKE = [
  `GET /relay?name=shop&target=${NOBODY} HTTP/1.1`,
  'Host: localhost',
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
  '',
  '',
].join('\r\n')

await eachBackend(t, 'hooks: answers keep what the declarations promise', async (t, backend) => {
  const { server, base } = await startHooksProcess(t, backend, {
    GATEHOUSE_SECRET_KEY: secretKey(),
    HOOKS_REPLAY_TARGETS: '127.0.0.1:9',
    ...UNWATCHED,
  })
  let [token, secret, events]: [string, string, string[]] = ['', '', []]
  let [job, search] = ['', '']
  const api = apiOf(base)
  let endpoint = await addEndpoint(base, 'keep', { allow_replay: 'true' })

  async function refresh() {
    const body = '{"id":"evt_1","type":"kept","event_id":"evt_1"}'
    for (const provider of SIGNED) {
      await enable(base, provider, true)
      await deliver(base, provider, body)
    }
    const authorization = `Bearer ${token}`
    if ((await post(base, 'generic/keep-token', body, { authorization })).status !== 202) {
      await change(base, 'generic:keep-token', 'remove')
      token = await addProvider(base, 'keep-token')
    }
    if (secret === '' || (await sendStandard(base, 'keep-signed', secret)).status !== 202) {
      await change(base, 'generic:keep-signed', 'remove')
      secret = await addSigned(base, 'keep-signed')
    }
    if ((await modern(endpoint, 'tools/list')).status !== 200) {
      await change(base, '', '../settings/endpoints/keep/revoke')
      endpoint = await addEndpoint(base, 'keep', { allow_replay: 'true' })
    }
    await change(base, 'generic:keep-open', 'remove')
    await addProvider(base, 'keep-open', { open: true })
    // 409 where the one before is still there.
    await api('POST', '/searches', { name: 'keep', query: 'text=keep' })
    const saved = await api<{ searches: { id: number }[] }>('GET', '/searches')
    search = String(saved.json.searches[0]?.id)
    await postForm(base, '/destinations', { name: 'keep', url: NOBODY })
    // It leaves at once: its name is known then, and can be forgotten.
    await rawExchange(Number(new URL(base).port), HANDSHAKE, { until: (text) => text !== '' })
    events = (await eventIds(base)).slice(0, 40).map(String)
    const wanted = { provider: 'chat', target_url: NOBODY, highest_id: Number(events[0]) }
    const started = await api<{ job: { id: string } }>('POST', '/events/replay', wanted)
    // One that runs goes on.
    if (started.status === 200) job = started.json.job.id
  }

  /** Headers of who may deliver to the receiver of the path. */
  function signed({ path, body = '' }: Sent) {
    const name = /\/webhooks\/(?:generic\/)?([^/?]*)/.exec(path)?.[1]
    const provider = SIGNED.find((one) => one === name)
    if (provider !== undefined) return signatureHeaders(provider, body)
    if (name === 'keep-signed') return standardHeaders(secret, body)
    return name === 'keep-token' ? { authorization: `Bearer ${token}` } : {}
  }

  const name = fc.constantFrom('keep-token', 'keep-signed', 'shop', 'a-b_c')
  const provider = fc.oneof(
    name.map((one) => `generic:${one}`),
    fc.constantFrom(...SIGNED, 'generic:keep-open'),
  )
  const id = fc.nat(50).map((at) => events[at % events.length] ?? '1')
  const receivers = [
    '/webhooks/:provider',
    '/webhooks/generic/:name',
    '/webhooks/generic/:name/:token',
  ]
  await fuzz(t, backend.name, {
    server,
    base,
    routes: ROUTES,
    refresh,
    bodies: {
      ...Object.fromEntries(receivers.map((path) => [`POST ${path}`, Delivery])),
      // What else the API shows is read-only.
      'PUT /api/v1/destinations/:name': Type.Object({ url: Type.Literal(NOBODY) }),
      'PUT /api/v1/searches/:id': Type.Object({ name: Type.String() }),
      'POST /mcp/:endpoint': await toolCalls(endpoint),
    },
    known: {
      name,
      provider,
      id,
      'providers/:name': provider,
      endpoint: fc.constant('keep'),
      'destinations/:name': fc.constant('keep'),
      'searches/:id': fc.nat(0).map(() => search),
      query: fc.constantFrom('text=keep', 'provider=chat'),
      url: fc.constant(NOBODY),
      rate: fc.constantFrom('', '5/s'),
      json: fc.constant('id=evt_1'),
      // Of destinations: a form has them as texts, and the API as objects.
      sign_with: nothing,
      headers: nothing,
      authorization: nothing,
      version: nothing,
      providers: fc.constant(''),
      body_template: fc.constantFrom('', 'slack'),
      since: fc.constantFrom('', '1'),
      events: nothing,
      scheme: fc.constant('standard'),
      // The parts of a scheme, which go together.
      ...Object.fromEntries(SCHEME_PARTS.map((part) => [part, fc.constant('')])),
      token: fc.nat(0).map(() => token),
      _meta: fc.constant(META),
      cursor: oddCursor,
      job: fc.nat(0).map(() => job),
      target_url: fc.constantFrom(NOBODY, ''),
      timeout_s: fc.constant(1),
      replay_default_target: fc.constantFrom(NOBODY, ''),
      trust_mode: fc.constant('token'),
      secret: fc.constant(''),
      expected_interval: fc.constantFrom('', '1h', '30d'),
      // Texts of the forms, and values of the API.
      enabled: fc.constantFrom<string | boolean>('true', true, 'false', false),
      rejection_burst: fc.constantFrom('', '10/5m', '10 in 5m'),
      overlap: fc.constantFrom('0', '3600'),
    },
    callers: {
      signed,
      nobody: () => ({}),
      tool: (sent) => toolHeaders(endpoint, sent),
      foreign: () => ({ origin: 'http://evil.example', 'sec-fetch-site': 'cross-site' }),
      forwarded: () => ({ 'x-forwarded-for': '203.0.113.7', 'remote-email': 'ann@example.com' }),
    },
    best: ({ path }) => (path.startsWith('/mcp/') ? 'tool' : 'signed'),
    faults: (path) => ({
      'application/problem+json': FAULT,
      ...(path.startsWith('/mcp/') && { 'application/json': RPC_FAULT }),
    }),
    secrets: Object.values(SECRETS),
  })
})
