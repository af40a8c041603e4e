import { apiOf, type Api } from '../helpers/api.ts'
import { accepted, SECRETS, addProvider, deliver, now, post } from '../helpers/hooks.ts'
import { request, type Response } from '../helpers/http.ts'
import { openStream } from '../helpers/sse.ts'
import type { TestServer } from '../helpers/server.ts'
import { hasMembers, unbound, type Check, type Contract } from './frame.ts'

/** Members of answers that docs/contract/hooks.md does not have. */
export const ADDED = {
  EventDetail: {
    payload_encoding: 'contract/decisions.md',
    attempts: 'decisions/003-hooks-details.md',
  },
} as const

/** The hooks service with the generic providers `ci` and `anybody`. */
type HooksFace = {
  base: string
  api: Api
  /** The token of `ci`. */
  token: string
}

/** Makes what the rows of hooks need. */
export async function openHooks({ hooks: base }: TestServer): Promise<HooksFace> {
  const token = await addProvider(base, 'ci')
  await addProvider(base, 'anybody', { open: true })
  return { base, api: apiOf(base), token }
}

const SUMMARY = 'EventSummary ('
const INTRODUCES = unbound('it says what the document or the service is')

type HooksCheck = Check<HooksFace>

/** A page that has these parts. */
function page(path: string, ...parts: readonly (string | RegExp)[]): HooksCheck {
  return async (t, { base }) => {
    const { status, headers, text } = await request(base + path)
    t.match({ status, headers }, { status: 200, headers: { 'content-type': /^text\/html/ } })
    for (const part of [/^\s*<!doctype html>/, ...parts]) t.match(text, part)
  }
}

const acknowledges: HooksCheck = async (t, { base, token }) => {
  const body = '{"ack":1}'
  const generic = (name: string, headers = {}) => post(base, `generic/${name}`, body, headers)
  const rows: readonly (readonly [provider: string, trust: string, answer: Response])[] = [
    ['generic:ci', 'token', await generic('ci', { authorization: `Bearer ${token}` })],
    ['generic:anybody', 'open', await generic('anybody')],
    ['code_host', 'signed', await deliver(base, 'code_host', body)],
    ['payments', 'signed', await deliver(base, 'payments', body)],
    ['chat', 'signed', await deliver(base, 'chat', body)],
  ]
  for (const [provider, trust_mode, answer] of rows) {
    t.match(answer, { status: 202, headers: { 'content-type': 'application/json' } })
    hasMembers(t, answer.json(), 'hooks', 'IngestAck')
    t.match(answer.json(), { provider, trust_mode, verified: trust_mode === 'signed' })
  }
}

const streams: HooksCheck = async (t, { base }) => {
  const stream = await openStream(t, `${base}/events`)
  await stream.until(({ event }) => event === 'status')
  const id = await accepted(deliver(base, 'code_host', `{"seen":${now()}}`))
  const told = await stream.until((event) => event.id === String(id))
  t.equal(told.event, 'event-received')
  hasMembers(t, JSON.parse(told.data), 'hooks', SUMMARY)
}

const providers: HooksCheck = async (t, { api }) => {
  type Page = { providers: readonly object[] }
  const { json, text } = await api<Page>('GET', '/providers')
  for (const one of json.providers) hasMembers(t, one, 'hooks', 'ProviderStatus')
  for (const secret of Object.values(SECRETS)) t.notOk(text.includes(secret))
  t.match(text, /"configured".*"none-by-design"/)
}

const fragment: HooksCheck = async (t, face) => {
  for (const path of ['/log', '/providers', '/settings']) {
    await page(path)(t, face)
    const { text } = await request(face.base + path, { headers: { 'HX-Request': 'true' } })
    t.notOk(text.includes('<html'), path)
  }
}

const ORDER = 'test/hooks/receive/receivers.test.ts > the checks have an order'
const UNKNOWN = 'test/hooks/receive/receivers.test.ts > 404 comes before everything else'
const TOKEN_PLACES =
  'test/hooks/receive/receivers.test.ts > a token is taken from where senders put it'
const WRONG_TOKEN = 'test/hooks/receive/receivers.test.ts > a missing, empty or wrong token is 403'
const SPELLINGS =
  'test/hooks/receive/receivers.test.ts > both spellings of the headers verify, and the neutral one wins'
const HANDSHAKE =
  'test/hooks/receive/receivers.test.ts > a handshake is verified first, then echoed, and stored never'
const FORMS =
  'test/hooks/receive/receivers.test.ts > forms are read as forms when their type says so'
const FRESHNESS =
  'test/hooks/receive/signatures.test.ts > the freshness window is inclusive in both directions'
const TOGGLE = 'test/hooks/receive/providers.test.ts > the toggle'
const NO_EVENT = 'test/hooks/api.test.ts > wrong input'
const STATUS = 'test/hooks/log/stream.test.ts > head, retry and status come at once'
const RESUMED = 'test/hooks/log/stream.test.ts > resume by header, by query, and from now on'
const EVENT =
  'test/hooks/log/event-page.test.ts > everything that is known of an event, and its bytes'
const QUEUE = 'test/hooks/agents/queue.test.ts > every stream is a provider with a channel'
const BEYOND = 'test/hooks/guards.test.ts > an address beyond loopback needs a trusted proxy'
const DATABASE_AWAY = 'test/faults/hooks-outage.test.ts > PostgreSQL goes away for a while'
const NAMES = 'test/hooks/receive/providers.test.ts > what is not created'
const PAGES_OF_LOG = 'test/hooks/log/log.test.ts > newest first, ids decide between equal times'
const FILTERS = 'test/hooks/log/log.test.ts > filters by provider, type and time'
const REFUSED_QUERIES = 'test/hooks/log/log.test.ts > what is refused'
const DEFAULTS = 'test/hooks/settings.test.ts > defaults, and all fields changed'
const BAD_SETTINGS =
  'test/hooks/settings.test.ts > an invalid value is refused, and nothing is taken then'

/** The sentences of docs/contract/hooks.md. */
export const HOOKS: Contract<HooksFace> = {
  'Webhook Ingestion Service': {
    'This document covers': INTRODUCES,
    'Two other documents': INTRODUCES,
    'Neutral-name note': INTRODUCES,
  },
  '1. What the service does': {
    'Receives webhooks over HTTP from three': acknowledges,
    'Signed providers are verified before': ORDER,
    'Accepted events are normalized': streams,
    'A second, pull-based': QUEUE,
    'It has no HTTP endpoint.': UNKNOWN,
    'A local web UI': fragment,
    'The service binds to loopback':
      'test/house/docs.test.ts > the page on settings has every variable as the program declares it',
    'Its base address is': INTRODUCES,
    'Optional exposure beyond': BEYOND,
  },
  Enumerations: {
    'TrustMode |': acknowledges,
    'ProviderFamily |': QUEUE,
    'SecretStatus |': providers,
  },
  'EventSummary (': {
    'No payload or headers.': streams,
    'Field |': async (t, { api }) => {
      const { json } = await api<{ events: readonly unknown[] }>('GET', '/events?limit=1')
      hasMembers(t, json.events[0], 'hooks', SUMMARY)
    },
  },
  'EventDetail (': {
    'Field |': async (t, { base, api }) => {
      const id = await accepted(deliver(base, 'chat', '{ "a":1 }'))
      const { json } = await api('GET', `/events/${id}`)
      hasMembers(t, json, 'hooks', [SUMMARY, 'EventDetail ('], ADDED.EventDetail)
      t.match(json, { verify_detail: 'hmac-sha256 ok', payload: '{ "a":1 }' })
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
    '`detail` never contains': ORDER,
  },
  '3. States': {
    'States named:': INTRODUCES,
    'provider enabled = false |': TOGGLE,
    'provider enabled = true |': ORDER,
    'any | POST': TOGGLE,
    '(none) | accepted signed': acknowledges,
    '(none) | accepted generic': acknowledges,
    '(none) | signed webhook': ORDER,
    'A generic provider does not exist':
      'test/hooks/receive/providers.test.ts > a token is made, shown once, and only its hash is stored',
  },
  '4. Endpoints': { 'All webhook receivers are': acknowledges },
  'POST `/webhooks/{provider}`': {
    'Path parameter `provider`': acknowledges,
    'Request body (required)': FORMS,
    'The raw body is read and verified': ORDER,
    '202 JSON IngestAck': acknowledges,
    '200 JSON object': HANDSHAKE,
    'For the `chat` provider': HANDSHAKE,
    '400, 401, 403, 404, 413': ORDER,
  },
  'POST `/webhooks/generic/{name}`': {
    'Path parameter `name`': NAMES,
    'Query parameter `token`': TOKEN_PLACES,
    'The token may instead': TOKEN_PLACES,
    'Request body (required)':
      'test/hooks/receive/ingest.test.ts > what is accepted is listed, and comes back byte for byte',
    'Responses: 202': WRONG_TOKEN,
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
    'Named messages': STATUS,
    'See section 6.': unbound('a reference'),
    'Optional header `Last-Event-ID`': RESUMED,
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
  'GET `/log/{id}`': { 'Path `id`': NO_EVENT, 'Response 200 HTML with raw payload': EVENT },
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
    'Path `name`': TOGGLE,
    'Body `application/x-www-form-urlencoded`': TOGGLE,
    'Response 200 HTML toggle': TOGGLE,
  },
  'GET `/settings` (HTML)': {
    'GET: retention policy': page('/settings', 'retention_max_age_days', 'sse_retry_ms'),
    'Response 200 HTML.': page('/settings'),
    'POST body': DEFAULTS,
    'Values are persisted and take':
      'test/hooks/retention.test.ts > by age, when the setting changes',
    'Response 200 re-rendered': DEFAULTS,
  },
  'GET `/healthz`': { 'Public.': DATABASE_AWAY, 'Response 200 JSON Health': DATABASE_AWAY },
  'Tool-protocol endpoint': {
    'A tool-protocol surface':
      'test/hooks/agents/mcp.test.ts > 2025: handshake, ping, notifications, errors within a 200',
  },
  '5. Authentication': {
    'The UI, live stream and health': streams,
    'Exposure beyond loopback': BEYOND,
    'Signed providers: every request': ORDER,
    '`code_host` |': SPELLINGS,
    '`payments` |': SPELLINGS,
    '`chat` |': SPELLINGS,
    '`payments` and `chat` additionally': FRESHNESS,
    'Generic providers: a configured': WRONG_TOKEN,
    'It is presented as': TOKEN_PLACES,
    'It authenticates the caller': acknowledges,
    'Constant-time comparison.': unbound('no test measures a time'),
    'A missing or wrong token': WRONG_TOKEN,
  },
  '6. Events': {
    '`event-received` |': streams,
    '`status` |': STATUS,
    'Keep-alive comments':
      'test/hooks/log/stream.test.ts > comments, statuses and clients that come and go',
    'Reconnection delay': DEFAULTS,
    'A client may send `Last-Event-ID`': RESUMED,
    'An accepted webhook causes one': streams,
  },
  '7. Errors': {
    '400 | signed': ORDER,
    '401 | signed': ORDER,
    '403 | signed': ORDER,
    '403 | generic': WRONG_TOKEN,
    '404 | signed': UNKNOWN,
    '404 | generic': UNKNOWN,
    '404 | `/log/{id}`': NO_EVENT,
    '413 | both': ORDER,
    '422 | POST': BAD_SETTINGS,
    '503 | `/healthz`': DATABASE_AWAY,
    'Error bodies use the Problem':
      'test/hooks/pages.test.ts > an error is a page for a browser and a problem for everybody else',
  },
  '8. Limits': {
    'Timestamp freshness': FRESHNESS,
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
