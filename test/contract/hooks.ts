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
  signatureHeaders,
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

export async function openHooks({ hooks: base }: TestServer): Promise<HooksFace> {
  const token = await addProvider(base, 'ci')
  return { base, api: apiOf(base), token, agent: await addEndpoint(base, 'contract') }
}

const WRONG = { 'X-CodeHost-Signature-256': `sha256=${'0'.repeat(64)}` }
const LONG = 'x'.repeat(65_537)
const PROBLEM = 'application/problem+json'
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

/** The query of the log's next page, and the ids that it lists. */
async function log(base: string, query: string) {
  const { status, text } = await request(`${base}/log?${query}`, { headers: HTMX })
  const ids = [...text.matchAll(/data-id="(\d+)"/g)].map(([, id]) => Number(id))
  const next = /href="\/log\?([^"]*cursor=[^"]*)"/.exec(text)?.[1]?.replaceAll('&amp;', '&')
  return { status, text, ids, next }
}

/** Nothing is stored of this, and it is refused. */
async function refused(
  t: Test,
  face: Face,
  status: number,
  sent: () => Promise<Response>,
): Promise<void> {
  const before = await newest(face)
  refuses(t, await sent(), [status])
  t.equal(await newest(face), before, 'nothing is stored')
}

/** The newest event. */
async function newest({ api }: Face): Promise<string> {
  return (await api('GET', '/events?limit=1')).text
}

const acknowledges: HooksCheck = async (t, face) => {
  for (const provider of SIGNED) {
    const answer = await deliver(face.base, provider, '{"ack":1}')
    t.match(answer, { status: 202, headers: { 'content-type': 'application/json' } })
    hasMembers(t, answer.json(), 'hooks', 'IngestAck')
    t.match(answer.json(), { provider, trust_mode: 'signed', verified: true })
  }
}

const unsigned: HooksCheck = async (t, face) => {
  for (const headers of [{}, WRONG, { 'X-CodeHost-Signature-256': 'x' }]) {
    await refused(t, face, 401, () => post(face.base, 'code_host', '{}', headers))
  }
}

const turnedOff: HooksCheck = async (t, face) => {
  await enable(face.base, 'payments', false)
  await refused(t, face, 403, () => deliver(face.base, 'payments', '{}'))
  await enable(face.base, 'payments', true)
  t.equal((await deliver(face.base, 'payments', '{}')).status, 202)
}

const unknownProvider: HooksCheck = (t, face) =>
  refused(t, face, 404, () => post(face.base, 'nobody', '{}'))

const unknownGeneric: HooksCheck = (t, face) =>
  refused(t, face, 404, () => post(face.base, 'generic/nobody', '{}'))

const tooLong: HooksCheck = async (t, face) => {
  await refused(t, face, 413, () => toCi(face, LONG))
  await refused(t, face, 413, () => post(face.base, 'chat', LONG))
}

const wrongToken: HooksCheck = async (t, face) => {
  await refused(t, face, 403, () => post(face.base, 'generic/ci', '{}'))
  await refused(t, face, 403, () => toCi({ ...face, token: 'wrong' }))
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

const genericNames: HooksCheck = async (t, face) => {
  const { base } = face
  for (const name of ['7', `a${'_-'.repeat(31)}z`]) {
    await addProvider(base, name, { open: true })
    t.equal((await post(base, `generic/${name}`, '{}')).status, 202, name)
  }
  for (const name of ['-a', '_a', 'A', 'a.b', 'a'.repeat(65)]) {
    refuses(t, await postForm(base, '/providers', { name }), [422], name)
    await refused(t, face, 404, () => post(base, `generic/${name}`, '{}'))
  }
}

const noEvent: HooksCheck = async (t, { base }) => {
  for (const id of ['9999999', 'x']) refuses(t, await request(`${base}/log/${id}`), [404])
}

const noProvider: HooksCheck = async (t, { base }) =>
  refuses(t, await toggled(base, 'nobody', 'true'), [404])

const badSettings: HooksCheck = async (t, { base }) => {
  const bad = { sse_retry_ms: '249', retention_max_age_days: '-1', retention_max_rows: '-1' }
  for (const pair of Object.entries(bad)) {
    refuses(t, await postForm(base, '/settings', Object.fromEntries([pair])), [422])
  }
}

/** The settings form has this value at first, and takes no less than the least. */
function setting(name: string, least: number, first: number): HooksCheck {
  return async (t, { base }) => {
    const { text } = await request(`${base}/settings`)
    t.match(text, new RegExp(`name="${name}"[^>]*min="${least}"[^>]*value="${first}"`))
    refuses(t, await postForm(base, '/settings', { [name]: String(least - 1) }), [422])
    isHtml(t, await postForm(base, '/settings', { [name]: String(least) }))
    isHtml(t, await postForm(base, '/settings', { [name]: String(first) }))
  }
}

const retry = setting('sse_retry_ms', 250, 3000)

const limits: HooksCheck = async (t, { base }) => {
  const bodies = Array.from({ length: 51 }, (_, n) => `{"n":${n}}`)
  await Promise.all(bodies.map((body) => deliver(base, 'code_host', body)))
  t.equal((await log(base, '')).ids.length, 50)
  t.equal((await log(base, 'limit=1')).ids.length, 1)
  t.ok((await log(base, 'limit=200')).ids.length > 50)
  for (const limit of ['0', '201']) {
    refuses(t, await request(`${base}/log?limit=${limit}`), [400])
  }
}

const streams: HooksCheck = async (t, { base }) => {
  const stream = await openStream(t, `${base}/events`)
  t.match(stream, { status: 200, headers: { 'content-type': /^text\/event-stream/ } })
  const status = await stream.until(({ event }) => event === 'status')
  t.match(JSON.parse(status.data), { connection: /^(receiving|idle)$/, db: 'ok' })
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

const COMMENTS = elsewhere(
  'test/hooks/stream.test.ts',
  'comments, statuses and clients that come and go',
)
const QUEUE = elsewhere('test/hooks/queue.test.ts', 'every stream is a provider with a channel')
const BEYOND = elsewhere(
  'test/hooks/guards.test.ts',
  'an address beyond loopback needs a trusted proxy',
)
const DATABASE_AWAY = elsewhere(
  'test/faults/hooks-outage.test.ts',
  'PostgreSQL goes away for a while',
)

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
    'Accepted events are normalized': async (t, { base, agent }) => {
      const { id } = (await deliver(base, 'code_host', '{"tool":1}')).json<Ack>()
      const { structuredContent } = await callTool(agent, 'get_webhook_event', { id })
      t.match(structuredContent, { id, payload: '{"tool":1}' })
    },
    'A second, pull-based': elsewhere(
      'test/hooks/queue.test.ts',
      'the field payload is the payload, byte for byte',
    ),
    'It has no HTTP endpoint.': unknownProvider,
    'A local web UI': async (t, { base }) => {
      for (const path of ['/log', '/providers', '/settings']) {
        isHtml(t, await request(base + path), /<!doctype html>/)
        const { text } = await request(base + path, { headers: HTMX })
        t.notOk(text.includes('<html'), `${path}: a fragment`)
      }
    },
    'The service binds to loopback': elsewhere(
      'test/house/docs.test.ts',
      'the page on settings has every variable as the program declares it',
    ),
    'Its base address is': INTRODUCES,
    'Optional exposure beyond': BEYOND,
  },
  Enumerations: {
    'TrustMode |': async (t, face) => {
      await addProvider(face.base, 'anybody', { open: true })
      const modes = async (sent: Promise<Response>) => (await sent).json<Ack>().trust_mode
      t.equal(await modes(deliver(face.base, 'chat', '{}')), 'signed')
      t.equal(await modes(toCi(face)), 'token')
      t.equal(await modes(post(face.base, 'generic/anybody', '{}')), 'open')
    },
    'ProviderFamily |': QUEUE,
    'SecretStatus |': async (t, { base, api }) => {
      await addProvider(base, 'no-secret', { open: true })
      const { text } = await api('GET', '/providers')
      for (const secret of Object.values(SECRETS)) t.notOk(text.includes(secret))
      t.match(text, /"configured".*"none-by-design"/)
    },
  },
  'EventSummary (': {
    'No payload or headers.': streams,
    'Field |': async (t, { base, api, agent }) => {
      await deliver(base, 'code_host', '{"of":"lists"}')
      type Page = { readonly events: readonly unknown[] }
      const { json } = await api<Page>('GET', '/events?limit=1')
      const tool = await callTool(agent, 'list_webhook_events', { limit: 1 })
      const { events } = tool['structuredContent'] as unknown as Page
      for (const [event] of [json.events, events]) hasMembers(t, event, 'hooks', SUMMARY)
    },
  },
  'EventDetail (': {
    'Field |': async (t, face) => {
      const sent = await toCi(face, '{ "a":1 }', { 'X-Delivery-Id': `d-${now()}` })
      const { json } = await face.api('GET', `/events/${sent.json<Ack>().id}`)
      hasMembers(t, json, 'hooks', [SUMMARY, 'EventDetail ('], ADDED.EventDetail)
      t.match(json, { verify_detail: 'token ok', payload: '{ "a":1 }' })
      t.match(json, { headers: { authorization: '«redacted»' }, source_ip: '127.0.0.1' })
    },
  },
  ProviderStatus: {
    'Field |': async (t, { api }) => {
      const { json } = await api<{ providers: readonly object[] }>('GET', '/providers')
      t.ok(json.providers.length > 3)
      for (const one of json.providers) hasMembers(t, one, 'hooks', 'ProviderStatus')
    },
    "The schema's required list": async (t, { api }) => {
      const { text } = await api('GET', '/providers')
      t.match(text, /"name":"chat","family":"webhook","trust_mode":"signed","enabled":true/)
    },
  },
  'IngestAck (': { 'Required fields:': acknowledges },
  'Settings (': { 'Field |': retry },
  Health: {
    'Field |': async (t, { base }) => {
      const answer = await request(`${base}/healthz`)
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
    '`detail` never contains': async (t, { base }) => {
      const headers = signatureHeaders('chat', '{}', { secret: 'another' })
      const { text } = await post(base, 'chat', '{}', headers)
      t.notMatch(text, /[0-9a-f]{16}/)
    },
  },
  '3. States': {
    'States named:': INTRODUCES,
    'provider enabled = false |': async (t, { base }) => {
      await enable(base, 'chat', false)
      isHtml(t, await toggled(base, 'chat', 'true'), /aria-checked="true"/)
      t.equal((await deliver(base, 'chat', '{}')).status, 202)
    },
    'provider enabled = true |': turnedOff,
    'any | POST': noProvider,
    '(none) | accepted signed': acknowledges,
    '(none) | accepted generic': async (t, face) => {
      const answer = await toCi(face)
      const { id, ...ack } = answer.json<Ack>()
      t.match(ack, { provider: 'generic:ci', trust_mode: 'token', verified: false })
      const { json } = await face.api('GET', `/events/${id}`)
      t.match(json, { verified: false, trust_mode: 'token', verify_detail: 'token ok' })
    },
    '(none) | signed webhook': unsigned,
    'A generic provider does not exist': async (t, face) => {
      await refused(t, face, 404, () => post(face.base, 'generic/born', '{}'))
      await addProvider(face.base, 'born', { enabled: false, open: true })
      await refused(t, face, 403, () => post(face.base, 'generic/born', '{}'))
    },
  },
  '4. Endpoints': { 'All webhook receivers are': acknowledges },
  'POST `/webhooks/{provider}`': {
    'Path parameter `provider`': acknowledges,
    'Request body (required)': async (t, { base }) => {
      const sent = await deliver(base, 'code_host', 'payload=%7B%7D', FORM_TYPE)
      t.equal(sent.status, 202)
      refuses(t, await deliver(base, 'code_host', '[1]'), [400], 'no object')
    },
    'The raw body is read and verified': async (t, face) =>
      refused(t, face, 401, () => post(face.base, 'code_host', 'no JSON', WRONG)),
    '202 JSON IngestAck': acknowledges,
    '200 JSON object': handshake,
    'For the `chat` provider': handshake,
    '400, 401, 403, 404, 413': async (t, face) => {
      await enable(face.base, 'payments', false)
      const answers = [
        await deliver(face.base, 'code_host', 'x'),
        await post(face.base, 'code_host', '{}'),
        await deliver(face.base, 'payments', '{}'),
        await post(face.base, 'nobody', '{}'),
        await post(face.base, 'code_host', LONG),
      ]
      await enable(face.base, 'payments', true)
      const statuses = answers.map(({ status }) => status)
      t.same(statuses, [400, 401, 403, 404, 413])
      for (const { headers } of answers) t.equal(headers['content-type'], PROBLEM)
    },
  },
  'POST `/webhooks/generic/{name}`': {
    'Path parameter `name`': genericNames,
    'Query parameter `token`': async (t, { base, token }) =>
      t.equal((await post(base, `generic/ci?token=${token}`, '{}')).status, 202),
    'The token may instead': async (t, { base, token }) =>
      t.equal((await post(base, `generic/ci/${token}`, '{}')).status, 202),
    'Request body (required)': async (t, face) =>
      t.equal((await toCi(face, '{"any":{"shape":[1]}}')).status, 202),
    'Responses: 202': async (t, face) => {
      hasMembers(t, (await toCi(face)).json(), 'hooks', 'IngestAck')
      await wrongToken(t, face)
      await unknownGeneric(t, face)
      await tooLong(t, face)
    },
  },
  'GET `/`: dashboard': {
    'Connection strip updated live': async (t, { base }) => {
      await deliver(base, 'chat', '{}')
      const { text } = await request(`${base}/`)
      t.match(text, /data-stream="\/events".*<span>(receiving|idle)<\/span>/s)
      t.match(text, /<tr[^>]*data-provider="chat".*?\d+ received.*?<time datetime="/s)
    },
    'Response 200': async (t, { base }) => isHtml(t, await request(`${base}/`)),
  },
  'GET `/events`': {
    'Response 200': streams,
    'Named messages': streams,
    'See section 6.': unbound('a reference'),
    'Optional header `Last-Event-ID`': streams,
  },
  'GET `/log`: event history': {
    'provider |': async (t, face) => {
      const { id } = (await toCi(face)).json<Ack>()
      t.equal((await log(face.base, 'provider=generic:ci')).ids[0], id)
      t.notOk((await log(face.base, 'provider=chat')).ids.includes(id))
    },
    'event_type |': async (t, face) => {
      const { id } = (await toCi(face, '{}', { 'X-Event-Type': 'rare.type' })).json<Ack>()
      t.same((await log(face.base, 'event_type=rare.type')).ids, [id])
    },
    'since |': async (t, face) => {
      const { id, received_at } = (await toCi(face)).json<Ack>()
      for (const since of [id, received_at]) {
        t.equal((await log(face.base, `since=${since}`)).ids.at(-1), id)
      }
    },
    'cursor |': async (t, { base }) => {
      const first = await log(base, 'limit=2')
      const { ids } = await log(base, String(first.next))
      t.same([...first.ids, ...ids], (await log(base, 'limit=4')).ids)
      refuses(t, await request(`${base}/log?cursor=zzz`), [400])
    },
    'limit |': limits,
    'Order:': async (t, { base }) => {
      const { ids } = await log(base, 'limit=200')
      t.same(
        ids,
        ids.toSorted((a, b) => b - a),
      )
    },
    'Response 200': async (t, { base }) => {
      isHtml(t, await request(`${base}/log`), /<!doctype html>/)
      const fragment = await request(`${base}/log`, { headers: HTMX })
      isHtml(t, fragment, /<table/)
      t.notOk(fragment.text.includes('<html'))
    },
    'Columns:': async (t, { base }) => {
      const { text } = await log(base, 'limit=1')
      const columns = ['Provider', 'Event type', 'Received', 'Verify status', 'Payload size']
      for (const column of columns) t.match(text, new RegExp(`<th [^>]*>${column}<`))
    },
  },
  'GET `/log/{id}`': {
    'Path `id`': noEvent,
    'Response 200 HTML with raw payload': async (t, { base }) => {
      const { id } = (await deliver(base, 'code_host', '{"raw": "yes"}')).json<Ack>()
      const page = await request(`${base}/log/${id}`)
      isHtml(t, page, /\{&quot;raw&quot;: &quot;yes&quot;\}/)
      t.match(page.text, /X-CodeHost-Signature-256<.*?«redacted»/s)
      t.match(page.text, 'hmac-sha256 ok')
      refuses(t, await request(`${base}/log/0`), [404])
    },
  },
  'GET `/providers`': {
    'Lists providers with family': async (t, { base }) => {
      const { text } = await request(`${base}/providers`)
      const card = text.split('<article').find((part) => part.includes('data-provider="chat"'))
      for (const part of ['webhook', 'signed', '/webhooks/chat', 'secret configured']) {
        t.match(card, part)
      }
      t.match(card, /action="\/providers\/chat\/enabled".*role="switch"/s)
    },
    'Response 200 HTML.': async (t, { base }) => isHtml(t, await request(`${base}/providers`)),
  },
  'POST `/providers/{name}/enabled`': {
    'Path `name`': async (t, { base }) => isHtml(t, await toggled(base, 'generic:ci', 'true')),
    'Body `application/x-www-form-urlencoded`': async (t, { base }) => {
      for (const enabled of ['', 'yes']) refuses(t, await toggled(base, 'chat', enabled), [422])
      const json = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' }
      refuses(t, await request(`${base}/providers/chat/enabled`, json), [415])
    },
    'Response 200 HTML toggle': async (t, face) => {
      const answer = await toggled(face.base, 'chat', 'true')
      isHtml(t, answer, /role="switch"/)
      t.notOk(answer.text.includes('<html'))
      await noProvider(t, face)
    },
  },
  'GET `/settings` (HTML)': {
    'GET: retention policy': async (t, { base }) => {
      const { text } = await request(`${base}/settings`)
      for (const field of ['retention_max_age_days', 'retention_max_rows', 'sse_retry_ms']) {
        t.match(text, `name="${field}"`)
      }
    },
    'Response 200 HTML.': async (t, { base }) => isHtml(t, await request(`${base}/settings`)),
    'POST body': async (t, { base }) => {
      const target = 'https://example.com/hook'
      await postForm(base, '/settings', { replay_default_target: target })
      t.match((await request(`${base}/settings`)).text, target)
      await postForm(base, '/settings', { replay_default_target: '' })
    },
    'Values are persisted and take': elsewhere(
      'test/hooks/retention.test.ts',
      'by age, when the setting changes',
    ),
    'Response 200 re-rendered': async (t, face) => {
      const saved = await postForm(face.base, '/settings', { sse_retry_ms: '2999' })
      isHtml(t, saved, /value="2999"/)
      t.notOk(saved.text.includes('<html'))
      await postForm(face.base, '/settings', { sse_retry_ms: '3000' })
      await badSettings(t, face)
    },
  },
  'GET `/healthz`': {
    'Public.': async (t, { base }) => {
      const headers = { host: 'anywhere.example' }
      t.equal((await request(`${base}/healthz`, { headers })).status, 200)
    },
    'Response 200 JSON Health': DATABASE_AWAY,
  },
  'Tool-protocol endpoint': {
    'A tool-protocol surface': elsewhere(
      'test/hooks/mcp.test.ts',
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
    'It is presented as': async (t, face) => {
      t.equal((await toCi(face)).status, 202)
      const header = { 'X-Webhook-Token': face.token }
      t.equal((await post(face.base, 'generic/ci', '{}', header)).status, 202)
    },
    'It authenticates the caller': async (t, face) =>
      t.match((await toCi(face, 'no JSON')).json(), { verified: false }),
    'Constant-time comparison.': unbound('its time can be measured by nobody reliably'),
    'A missing or wrong token': wrongToken,
  },
  '6. Events': {
    '`event-received` |': streams,
    '`status` |': streams,
    'Keep-alive comments': COMMENTS,
    'Reconnection delay': async (t, { base }) => {
      await postForm(base, '/settings', { sse_retry_ms: '2500' })
      const stream = await openStream(t, `${base}/events`)
      await stream.until(({ event }) => event === 'status')
      t.equal(stream.retry, 2500)
      await postForm(base, '/settings', { sse_retry_ms: '3000' })
    },
    'A client may send `Last-Event-ID`': streams,
    'An accepted webhook causes one': streams,
  },
  '7. Errors': {
    '400 | signed': async (t, face) => {
      await refused(t, face, 400, () => deliver(face.base, 'code_host', 'x'))
      await refused(t, face, 400, () => post(face.base, 'chat', '{}'))
    },
    '401 | signed': unsigned,
    '403 | signed': turnedOff,
    '403 | generic': wrongToken,
    '404 | signed': unknownProvider,
    '404 | generic': unknownGeneric,
    '404 | `/log/{id}`': noEvent,
    '413 | both': tooLong,
    '422 | POST': badSettings,
    '503 | `/healthz`': DATABASE_AWAY,
    'Error bodies use the Problem': async (t, { base }) => {
      for (const path of ['/nowhere', '/log/x', '/webhooks/none']) {
        const { headers, status } = await request(base + path)
        t.equal(headers['content-type'], PROBLEM, `${path} ${status}`)
      }
    },
  },
  '8. Limits': {
    'Timestamp freshness': freshness,
    '`/log` limit': limits,
    'Generic name': genericNames,
    'sse_retry_ms |': retry,
    'retention_max_age_days |': setting('retention_max_age_days', 0, 30),
    'retention_max_rows |': setting('retention_max_rows', 0, 50000),
  },
  '9. Versioning': {
    'The interface description': async (t, { base }) =>
      t.match((await request(`${base}/api/openapi.yaml`)).text, /^ +version: "0\.1\.0"$/m),
    'Receiver and UI paths': acknowledges,
  },
}
