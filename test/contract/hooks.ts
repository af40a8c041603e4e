import type { Test } from 'tap'
import { apiOf } from '../helpers/api.ts'
import type { Api } from '../helpers/api.ts'
import {
  FORM_TYPE,
  SECRETS,
  SIGNED,
  addProvider,
  deliver,
  enable,
  hmac,
  now,
  post,
  postForm,
} from '../helpers/hooks.ts'
import type { Ack, Signed } from '../helpers/hooks.ts'
import { request } from '../helpers/http.ts'
import type { Response } from '../helpers/http.ts'
import { addEndpoint, callTool } from '../helpers/mcp.ts'
import type { Endpoint } from '../helpers/mcp.ts'
import { refuses } from '../helpers/refusals.ts'
import { openStream } from '../helpers/sse.ts'
import type { TestServer } from '../helpers/server.ts'
import { elsewhere, hasMembers, unbound } from './frame.ts'
import type { Check, Contract } from './frame.ts'

/** Members of answers that docs/contract/hooks.md does not have. */
export const ADDED = {
  EventDetail: {
    payload_encoding: 'contract/decisions.md',
    attempts: 'decisions/003-hooks-details.md',
  },
} as const

/** The hooks service with a generic provider `ci`. */
export type HooksFace = {
  readonly base: string
  readonly api: Api
  /** The token of `ci`. */
  readonly token: string
  /** An endpoint of the tool protocol. */
  readonly agent: Endpoint
}

/** Makes what the rows of hooks need. */
export async function openHooks({ hooks: base }: TestServer): Promise<HooksFace> {
  const token = await addProvider(base, 'ci')
  await addProvider(base, 'anybody', { open: true })
  return { base, api: apiOf(base), token, agent: await addEndpoint(base, 'contract') }
}

const WRONG = { 'X-CodeHost-Signature-256': `sha256=${'0'.repeat(64)}` }
const LONG = 'x'.repeat(65_537)
const HTMX = { 'HX-Request': 'true' }
const SUMMARY = 'EventSummary ('
const INTRODUCES = unbound('it says what the document or the service is')

type Face = HooksFace
type HooksCheck = Check<HooksFace>

function toCi({ base, token }: Face, body = '{}', headers = {}): Promise<Response> {
  return post(base, 'generic/ci', body, { authorization: `Bearer ${token}`, ...headers })
}

async function toggled(base: string, name: string, enabled: string): Promise<Response> {
  return postForm(base, `/providers/${name}/enabled`, { enabled })
}

function isHtml(t: Test, answer: Response, text: RegExp | string = /\S/): void {
  t.match(answer, { status: 200, headers: { 'content-type': /^text\/html/ }, text })
}

/** What is sent is refused, and nothing is stored. */
function refused(
  status: number,
  ...sent: readonly ((face: Face) => Promise<Response>)[]
): HooksCheck {
  return async (t, face) => {
    const before = await newest(face)
    for (const send of sent) refuses(t, await send(face), [status])
    t.equal(await newest(face), before, 'nothing is stored')
  }
}

/** The newest event. */
async function newest({ api }: Face): Promise<string> {
  return (await api('GET', '/events?limit=1')).text
}

/** A page that has these parts. */
function page(path: string, ...parts: readonly (string | RegExp)[]): HooksCheck {
  return async (t, { base }) => {
    const answer = await request(base + path)
    isHtml(t, answer, /^\s*<!doctype html>/)
    for (const part of parts) t.match(answer.text, part)
  }
}

const acknowledges: HooksCheck = async (t, face) => {
  for (const provider of SIGNED) {
    const answer = await deliver(face.base, provider, '{"ack":1}')
    t.match(answer, { status: 202, headers: { 'content-type': 'application/json' } })
    hasMembers(t, answer.json(), 'hooks', 'IngestAck')
    t.match(answer.json(), { provider, trust_mode: 'signed', verified: true })
  }
}

const unsigned = refused(
  401,
  ({ base }) => post(base, 'code_host', '{}'),
  ({ base }) => post(base, 'code_host', 'no JSON', WRONG),
  ({ base }) => post(base, 'code_host', '{}', { 'X-CodeHost-Signature-256': 'x' }),
)
const unknownProvider = refused(404, ({ base }) => post(base, 'nobody', '{}'))
const unknownGeneric = refused(404, ({ base }) => post(base, 'generic/nobody', '{}'))
const tooLong = refused(
  413,
  (face) => toCi(face, LONG),
  ({ base }) => post(base, 'chat', LONG),
)
const wrongToken = refused(
  403,
  ({ base }) => post(base, 'generic/ci', '{}'),
  (face) => toCi({ ...face, token: 'wrong' }),
)
const unreadable = refused(
  400,
  ({ base }) => deliver(base, 'code_host', 'x'),
  ({ base }) => deliver(base, 'code_host', '[1]'),
  ({ base }) => post(base, 'chat', '{}'),
)
const noEvent = refused(404, ({ base }) => request(`${base}/log/9999999`))
const noProvider = refused(404, ({ base }) => toggled(base, 'nobody', 'true'))

const turnedOff: HooksCheck = async (t, face) => {
  await enable(face.base, 'payments', false)
  await refused(403, ({ base }) => deliver(base, 'payments', '{}'))(t, face)
  await enable(face.base, 'payments', true)
  t.equal((await deliver(face.base, 'payments', '{}')).status, 202)
}

const handshake: HooksCheck = async (t, face) => {
  const before = await newest(face)
  const answer = await deliver(face.base, 'chat', '{"type":"url_verification","challenge":"c-1"}')
  t.match(answer, { status: 200, headers: { 'content-type': 'application/json' } })
  t.same(answer.json(), { challenge: 'c-1' })
  t.equal(await newest(face), before, 'no event is stored')
}

const freshness: HooksCheck = async (t, { base }) => {
  for (const provider of ['payments', 'chat'] as const) {
    const sent = (at: number) => deliver(base, provider, '{}', {}, { at })
    t.equal((await sent(now() - 290)).status, 202, provider)
    for (const at of [now() - 310, now() + 310]) refuses(t, await sent(at), [401], provider)
  }
}

function signs(provider: Signed, made: (at: number, key: string) => object): HooksCheck {
  return async (t, { base }) => {
    const headers = { ...made(now(), SECRETS[provider]) }
    t.equal((await post(base, provider, '{"s":1}', headers)).status, 202)
    refuses(t, await post(base, provider, '{"s":2}', headers), [401], 'over another body')
  }
}

const streams: HooksCheck = async (t, { base }) => {
  const stream = await openStream(t, `${base}/events`)
  t.match(stream, { status: 200, headers: { 'content-type': /^text\/event-stream/ } })
  const status = await stream.until(({ event }) => event === 'status')
  t.match(JSON.parse(status.data), { connection: 'receiving', db: 'ok' })
  const { id } = (await deliver(base, 'code_host', `{"seen":${now()}}`)).json<Ack>()
  const told = await stream.until((event) => event.id === String(id))
  t.equal(told.event, 'event-received')
  hasMembers(t, JSON.parse(told.data), 'hooks', SUMMARY)
  await deliver(base, 'chat', `{"later":${now()}}`)
  const again = await stream.until((event) => Number(event.id) > id)
  t.equal(stream.events.filter((event) => event.id === String(id)).length, 1, 'told once')
  const resumed = await openStream(t, `${base}/events`, { lastEventId: String(id) })
  t.same(await resumed.until(({ event }) => event === 'event-received'), again)
}

/** What is sent is taken, and its answer has these members. */
function takes(send: (face: Face) => Promise<Response>, members: object = {}): HooksCheck {
  return async (t, face) => {
    const answer = await send(face)
    t.match([answer.status, answer.json()], [202, members])
  }
}

const providers: HooksCheck = async (t, { base, api, agent }) => {
  await addProvider(base, 'open-one', { open: true })
  type Page = { readonly providers: readonly object[] }
  const { json, text } = await api<Page>('GET', '/providers')
  const tool = await callTool(agent, 'list_providers')
  t.same(tool['structuredContent'], json)
  for (const one of json.providers) hasMembers(t, one, 'hooks', 'ProviderStatus')
  for (const secret of Object.values(SECRETS)) t.notOk(text.includes(secret))
  t.match(text, /"configured".*"none-by-design"/)
}

const shows: HooksCheck = async (t, face) => {
  const { id } = (await deliver(face.base, 'code_host', '{"raw": "yes"}')).json<Ack>()
  const parts = ['{&quot;raw&quot;: &quot;yes&quot;}', '«redacted»', 'hmac-sha256 ok']
  await page(`/log/${id}`, ...parts)(t, face)
}

const fragment: HooksCheck = async (t, { base }) => {
  for (const path of ['/log', '/providers', '/settings']) {
    isHtml(t, await request(base + path), /<!doctype html>/)
    const { text } = await request(base + path, { headers: HTMX })
    t.notOk(text.includes('<html'), path)
  }
}

const toggles: HooksCheck = async (t, { base }) => {
  await enable(base, 'chat', false)
  const answer = await toggled(base, 'chat', 'true')
  isHtml(t, answer, /aria-checked="true"/)
  t.notOk(answer.text.includes('<html'))
  t.equal((await deliver(base, 'chat', '{}')).status, 202)
  for (const enabled of ['', 'yes']) refuses(t, await toggled(base, 'chat', enabled), [422])
}

const saves: HooksCheck = async (t, { base }) => {
  const saved = await postForm(base, '/settings', { sse_retry_ms: '2500' })
  isHtml(t, saved, /value="2500"/)
  t.notOk(saved.text.includes('<html'))
  const stream = await openStream(t, `${base}/events`)
  await stream.until(({ event }) => event === 'status')
  t.equal(stream.retry, 2500)
}

const LOG = 'test/hooks/log/log.test.ts'
const SETTINGS = 'test/hooks/settings.test.ts'
const COMMENTS = elsewhere(
  'test/hooks/log/stream.test.ts',
  'comments, statuses and clients that come and go',
)
const QUEUE = elsewhere(
  'test/hooks/agents/queue.test.ts',
  'every stream is a provider with a channel',
)
const BEYOND = elsewhere(
  'test/hooks/guards.test.ts',
  'an address beyond loopback needs a trusted proxy',
)
const DATABASE_AWAY = elsewhere(
  'test/faults/hooks-outage.test.ts',
  'PostgreSQL goes away for a while',
)
const NAMES = elsewhere('test/hooks/receive/providers.test.ts', 'what is not created')
const PAGES_OF_LOG = elsewhere(LOG, 'newest first, ids decide between equal times')
const FILTERS = elsewhere(LOG, 'filters by provider, type and time')
const REFUSED_QUERIES = elsewhere(LOG, 'what is refused')
const DEFAULTS = elsewhere(SETTINGS, 'defaults, and all fields changed')
const BAD_SETTINGS = elsewhere(SETTINGS, 'an invalid value is refused, and nothing is taken then')

/** The sentences of docs/contract/hooks.md. */
export const HOOKS: Contract<HooksFace> = {
  'Webhook Ingestion Service': {
    'This document covers': INTRODUCES,
    'Two other documents': INTRODUCES,
    'Neutral-name note': INTRODUCES,
  },
  '1. What the service does': {
    'Receives webhooks over HTTP from three': acknowledges,
    'Signed providers are verified before': unsigned,
    'Accepted events are normalized': streams,
    'A second, pull-based': QUEUE,
    'It has no HTTP endpoint.': unknownProvider,
    'A local web UI': fragment,
    'The service binds to loopback': elsewhere(
      'test/house/docs.test.ts',
      'the page on settings has every variable as the program declares it',
    ),
    'Its base address is': INTRODUCES,
    'Optional exposure beyond': BEYOND,
  },
  Enumerations: {
    'TrustMode |': takes(({ base }) => post(base, 'generic/anybody', '{}'), {
      trust_mode: 'open',
    }),
    'ProviderFamily |': QUEUE,
    'SecretStatus |': providers,
  },
  'EventSummary (': {
    'No payload or headers.': streams,
    'Field |': async (t, { base, api, agent }) => {
      await deliver(base, 'code_host', '{"of":"lists"}')
      const { json } = await api<{ events: readonly unknown[] }>('GET', '/events?limit=1')
      hasMembers(t, json.events[0], 'hooks', SUMMARY)
      const tool = await callTool(agent, 'list_webhook_events', { limit: 1 })
      t.match(tool['structuredContent'], { events: json.events })
    },
  },
  'EventDetail (': {
    'Field |': async (t, face) => {
      const { id } = (await toCi(face, '{ "a":1 }')).json<Ack>()
      const { json } = await face.api('GET', `/events/${id}`)
      hasMembers(t, json, 'hooks', [SUMMARY, 'EventDetail ('], ADDED.EventDetail)
      t.match(json, { verify_detail: 'token ok', payload: '{ "a":1 }' })
      t.match(json, { headers: { authorization: '«redacted»' }, verified: false })
      const tool = await callTool(face.agent, 'get_webhook_event', { id })
      t.match(tool['structuredContent'], { payload: '{ "a":1 }', external_id: null })
    },
  },
  ProviderStatus: { 'Field |': providers, "The schema's required list": providers },
  'IngestAck (': { 'Required fields:': acknowledges },
  'Settings (': { 'Field |': DEFAULTS },
  Health: {
    'Field |': async (t, { base }) => {
      const answer = await request(`${base}/healthz`, { headers: { host: 'any.example' } })
      hasMembers(t, answer.json(), 'hooks', 'Health')
      t.match(answer.json(), { status: 'ok', db: 'ok', broker: 'disabled', database: 'ok' })
    },
  },
  'Problem (': {
    'Fields: `type`': async (t, { base }) => {
      const problem = await request(`${base}/log/0`)
      hasMembers(t, problem.json(), 'hooks', 'Problem')
      t.match(problem.json(), { type: 'about:blank', status: 404, instance: '/log/0' })
    },
    '`detail` never contains': async (t, { base }) =>
      t.notMatch((await post(base, 'code_host', '{}', WRONG)).text, /[0-9a-f]{16}/),
  },
  '3. States': {
    'States named:': INTRODUCES,
    'provider enabled = false |': toggles,
    'provider enabled = true |': turnedOff,
    'any | POST': noProvider,
    '(none) | accepted signed': acknowledges,
    '(none) | accepted generic': takes(toCi, {
      provider: 'generic:ci',
      trust_mode: 'token',
      verified: false,
    }),
    '(none) | signed webhook': unsigned,
    'A generic provider does not exist': elsewhere(
      'test/hooks/receive/providers.test.ts',
      'a token is made, shown once, and only its hash is stored',
    ),
  },
  '4. Endpoints': { 'All webhook receivers are': acknowledges },
  'POST `/webhooks/{provider}`': {
    'Path parameter `provider`': acknowledges,
    'Request body (required)': takes(({ base }) => deliver(base, 'chat', 'a=%7B%7D', FORM_TYPE)),
    'The raw body is read and verified': unsigned,
    '202 JSON IngestAck': acknowledges,
    '200 JSON object': handshake,
    'For the `chat` provider': handshake,
    '400, 401, 403, 404, 413': unreadable,
  },
  'POST `/webhooks/generic/{name}`': {
    'Path parameter `name`': NAMES,
    'Query parameter `token`': takes(({ base, token }) =>
      post(base, `generic/ci?token=${token}`, '{}'),
    ),
    'The token may instead': takes(({ base, token }) => post(base, `generic/ci/${token}`, '{}')),
    'Request body (required)': takes((face) => toCi(face, '{"any":{"shape":[1]}}')),
    'Responses: 202': wrongToken,
  },
  'GET `/`: dashboard': {
    'Connection strip updated live': page(
      '/',
      'data-stream="/events"',
      '<span>receiving</span>',
      /data-provider="code_host".*?\d+ received.*?<time datetime="/s,
    ),
    'Response 200': page('/'),
  },
  'GET `/events`': {
    'Response 200': streams,
    'Named messages': streams,
    'See section 6.': unbound('a reference'),
    'Optional header `Last-Event-ID`': streams,
  },
  'GET `/log`: event history': {
    'provider |': FILTERS,
    'event_type |': FILTERS,
    'since |': FILTERS,
    'cursor |': PAGES_OF_LOG,
    'limit |': REFUSED_QUERIES,
    'Order:': PAGES_OF_LOG,
    'Response 200': fragment,
    'Columns:': page(
      '/log',
      ...['Provider', 'Event type', 'Received', 'Verify status', 'Payload size'].map(
        (column) => new RegExp(`<th [^>]*>${column}<`),
      ),
    ),
  },
  'GET `/log/{id}`': { 'Path `id`': noEvent, 'Response 200 HTML with raw payload': shows },
  'GET `/providers`': {
    'Lists providers with family': page(
      '/providers',
      'data-find="chat signed webhook"',
      /webhook · <code>\/webhooks\/chat<\/code>\s*· secret configured/,
      /action="\/providers\/chat\/enabled".*role="switch"/s,
    ),
    'Response 200 HTML.': page('/providers'),
  },
  'POST `/providers/{name}/enabled`': {
    'Path `name`': toggles,
    'Body `application/x-www-form-urlencoded`': toggles,
    'Response 200 HTML toggle': toggles,
  },
  'GET `/settings` (HTML)': {
    'GET: retention policy': page('/settings', 'retention_max_age_days', 'sse_retry_ms'),
    'Response 200 HTML.': page('/settings'),
    'POST body': DEFAULTS,
    'Values are persisted and take': elsewhere(
      'test/hooks/retention.test.ts',
      'by age, when the setting changes',
    ),
    'Response 200 re-rendered': saves,
  },
  'GET `/healthz`': { 'Public.': DATABASE_AWAY, 'Response 200 JSON Health': DATABASE_AWAY },
  'Tool-protocol endpoint': {
    'A tool-protocol surface': elsewhere(
      'test/hooks/agents/mcp.test.ts',
      '2025: handshake, ping, notifications, errors within a 200',
    ),
  },
  '5. Authentication': {
    'The UI, live stream and health': streams,
    'Exposure beyond loopback': BEYOND,
    'Signed providers: every request': unsigned,
    '`code_host` |': signs('code_host', (_, key) => ({
      'X-CodeHost-Signature-256': `sha256=${hmac(key, '{"s":1}')}`,
    })),
    '`payments` |': signs('payments', (at, key) => ({
      'Payments-Signature': `t=${at},v1=${hmac(key, `${at}.{"s":1}`)}`,
    })),
    '`chat` |': signs('chat', (at, key) => ({
      'X-Chat-Signature': `v0=${hmac(key, `v0:${at}:{"s":1}`)}`,
      'X-Chat-Request-Timestamp': String(at),
    })),
    '`payments` and `chat` additionally': freshness,
    'Generic providers: a configured': wrongToken,
    'It is presented as': takes(({ base, token }) =>
      post(base, 'generic/ci', '{}', { 'X-Webhook-Token': token }),
    ),
    'It authenticates the caller': takes((face) => toCi(face, 'no JSON'), { verified: false }),
    'Constant-time comparison.': unbound('no test measures a time'),
    'A missing or wrong token': wrongToken,
  },
  '6. Events': {
    '`event-received` |': streams,
    '`status` |': streams,
    'Keep-alive comments': COMMENTS,
    'Reconnection delay': saves,
    'A client may send `Last-Event-ID`': streams,
    'An accepted webhook causes one': streams,
  },
  '7. Errors': {
    '400 | signed': unreadable,
    '401 | signed': unsigned,
    '403 | signed': turnedOff,
    '403 | generic': wrongToken,
    '404 | signed': unknownProvider,
    '404 | generic': unknownGeneric,
    '404 | `/log/{id}`': noEvent,
    '413 | both': tooLong,
    '422 | POST': BAD_SETTINGS,
    '503 | `/healthz`': DATABASE_AWAY,
    'Error bodies use the Problem': elsewhere(
      'test/hooks/pages.test.ts',
      'an error is a page for a browser and a problem for everybody else',
    ),
  },
  '8. Limits': {
    'Timestamp freshness': freshness,
    '`/log` limit': REFUSED_QUERIES,
    'Generic name': NAMES,
    'sse_retry_ms |': BAD_SETTINGS,
    'retention_max_age_days |': BAD_SETTINGS,
    'retention_max_rows |': BAD_SETTINGS,
  },
  '9. Versioning': {
    'The interface description': async (t, { base }) =>
      t.match((await request(`${base}/api/openapi.yaml`)).text, /^ +version: "0\.1\.0"$/m),
    'Receiver and UI paths': acknowledges,
  },
}
