import { createHash } from 'node:crypto'
import { t } from 'tap'
import type { Test } from 'tap'
import { VECTORS } from '../fixtures/signing-vectors.ts'
import { backends, onPostgres } from '../helpers/backends.ts'
import { rawExchange } from '../helpers/http.ts'
import { refuseAll } from '../helpers/refusals.ts'
import type { Refusal } from '../helpers/refusals.ts'
import {
  FORM_TYPE,
  SECRETS,
  SIGNED,
  deliver,
  enable,
  eventIds,
  now,
  post,
  shown,
  signatureHeaders,
  startHooks,
} from '../helpers/hooks.ts'
import type { Ack, Bytes, SignOptions, Signed } from '../helpers/hooks.ts'

const LIMIT = 2_048
const LONG = JSON.stringify({ text: 'x'.repeat(LIMIT) })
const WRONG = { 'X-CodeHost-Signature-256': `sha256=${'0'.repeat(64)}` }

const event = JSON.stringify({
  type: 'event_callback',
  event: { type: 'app_mention', channel: 'C1' },
  event_id: 'Ev08MFMKH6',
  trigger_id: 'not this one',
})
const command = VECTORS.find(({ provider }) => provider === 'chat')?.body ?? ''
const form = `payload=${encodeURIComponent('{"zen":"Half measures"}')}`
const cut = JSON.stringify({ id: 'evt_3', type: `${'a'.repeat(254)}😀` })
const longId = JSON.stringify({ id: 'i'.repeat(256), type: 't' })
const halves = '{"id":"evt_4\\ud83d","type":"x\\udc00"}'
const neutral = { 'X-CodeHost-Event': 'push', 'X-CodeHost-Delivery': 'd-1' }
const real = { 'X-GitHub-Event': 'ping', 'X-GitHub-Delivery': 'd-2' }

/** A body with its headers, and the event's type and id; null: no type, and the body's hash as the id. */
type Read = readonly [
  provider: Signed,
  body: string,
  headers: Readonly<Record<string, string>>,
  type: string | null,
  id: string | null,
]

const READ: Readonly<Record<string, Read>> = {
  'neutral headers': ['code_host', '{"type":"not this","id":"nor this"}', neutral, 'push', 'd-1'],
  'real headers': ['code_host', '{}', real, 'ping', 'd-2'],
  'both: the neutral ones win': [
    'code_host',
    '{"both":true}',
    { ...real, 'X-CodeHost-Event': 'issues', 'X-CodeHost-Delivery': 'd-3' },
    'issues',
    'd-3',
  ],
  'a form with headers': [
    'code_host',
    form,
    { ...FORM_TYPE, 'X-GitHub-Event': 'push', 'X-GitHub-Delivery': 'd-4' },
    'push',
    'd-4',
  ],
  'code_host, nothing': ['code_host', '{"n":1}', {}, null, null],
  'payments, whatever the headers': [
    'payments',
    '{"id":"evt_1","object":"event","type":"charge.succeeded"}',
    real,
    'charge.succeeded',
    'evt_1',
  ],
  'payments, nothing': ['payments', '{"n":2}', {}, null, null],
  'payments, no texts': ['payments', '{"id":7,"type":["a"]}', {}, null, null],
  'payments, empty': ['payments', '{"id":"","type":""}', {}, null, null],
  'chat, event': ['chat', event, {}, 'app_mention', 'Ev08MFMKH6'],
  'chat, type without event': [
    'chat',
    '{"type":"app_rate_limited","event_id":"Ev2"}',
    {},
    'app_rate_limited',
    'Ev2',
  ],
  'chat, event without type': [
    'chat',
    '{"type":"event_callback","event":{},"event_id":"Ev3"}',
    {},
    'event_callback',
    'Ev3',
  ],
  'chat, command': [
    'chat',
    command,
    FORM_TYPE,
    '/webhook-collect',
    '398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c',
  ],
  'chat, nothing': ['chat', '{"event":null}', {}, null, null],
  'control characters': ['payments', '{"id":"evt_2","type":"a\\u0000b\\n"}', {}, 'ab', 'evt_2'],
  'a type cut within a character': ['payments', cut, {}, `${'a'.repeat(254)}\ufffd`, 'evt_3'],
  'half a character': ['payments', halves, {}, 'x\ufffd', `sha256:${hash('evt_4\ufffd')}`],
  'an id that is too long': ['payments', longId, {}, 't', `sha256:${hash('i'.repeat(256))}`],
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

await onPostgres(t, 'signed receivers', async (t: Test, backend) => {
  const { base } = await startHooks(t, backend, { HOOKS_MAX_BODY: String(LIMIT) })

  // Each request here is wrong in every later way too: what comes first decides.
  await t.test('the checks have an order', async (t: Test) => {
    const sent = (provider: string, body: Bytes, headers = {}) => ({
      call: `POST /webhooks/${provider}`,
      ...{ body, headers },
    })
    const signed = (provider: Signed, body: Bytes, options: SignOptions = {}) =>
      sent(provider, body, signatureHeaders(provider, body, options))
    const { 'X-Chat-Signature': signature = '' } = signatureHeaders('chat', '{}')
    const time = { 'X-Chat-Request-Timestamp': String(now()) }
    const malformed = { 'X-CodeHost-Signature-256': 'nonsense' }
    const unknown = /No signed provider/
    const noTime = /X-Chat-Request-Timestamp/
    const noObjects = ['', 'x', '[1]', '7', '"text"', 'null', '{"a":', '\0', '{} {}']
    const refused = (rows: readonly Refusal[]): Promise<void> =>
      refuseAll(t, { service: 'hooks', base, state: () => eventIds(base) }, rows)

    await enable(base, 'chat', false)
    await refused([
      [sent('nobody', LONG, WRONG), 404, undefined, unknown],
      [sent('generic', LONG), 404, undefined, unknown],
      [sent('CODE_HOST', LONG), 404, undefined, unknown],
      [sent('chat', LONG), 403, undefined, /disabled/],
      [sent('chat', 'x'), 403, undefined, /disabled/],
      [signed('chat', '{}'), 403, undefined, /disabled/],
    ])
    await enable(base, 'chat', true)
    await refused([
      [sent('chat', LONG), 413, undefined, /limit of 2048 bytes/],
      [sent('code_host', LONG, WRONG), 413, undefined, /limit/],
      [signed('chat', LONG), 413, undefined, /limit/],
      [sent('chat', 'x'), 400, undefined, noTime],
      [sent('chat', '{}', { 'X-Chat-Signature': signature }), 400, undefined, noTime],
      [sent('chat', 'x', time), 401, undefined, /signature/],
      [sent('code_host', 'x'), 401, undefined, /signature/],
      [sent('code_host', 'x', WRONG), 401, undefined, /signature/],
      [sent('code_host', 'x', malformed), 401, undefined, /signature/],
      [signed('chat', 'x', { at: now() - 400 }), 401, undefined, /signature/],
      [signed('chat', 'x', { at: now() + 400 }), 401, undefined, /signature/],
      [signed('chat', 'x', { secret: 'another' }), 401, undefined, /signature/],
      ...noObjects.flatMap((body): readonly Refusal[] => [
        [signed('code_host', body), 400, undefined, /JSON object/],
        [signed('chat', body), 400, undefined, /JSON object/],
      ]),
    ])
    const pieces = [LONG.slice(0, 9), LONG.slice(9)]
    const { status, text } = await post(base, 'code_host', pieces, WRONG)
    t.equal(status, 413, 'in pieces')
    t.notMatch(text, /[0-9a-f]{16}/, 'no signature in the answer')
    t.notMatch((await post(base, 'code_host', 'x', WRONG)).text, /[0-9a-f]{16}/)
  })

  await t.test('what is right is acknowledged', async (t) => {
    const first = await deliver(base, 'code_host', '{"a":1}')
    t.equal(first.status, 202)
    t.equal(first.headers['content-type'], 'application/json')
    const ack = first.json<Ack>()
    t.same(Object.keys(ack).sort(), ['id', 'provider', 'received_at', 'trust_mode', 'verified'])
    t.match(ack, { provider: 'code_host', trust_mode: 'signed', verified: true })
    t.match(ack.received_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    t.ok(Number.isSafeInteger(ack.id), 'an integer id')
    const second = await deliver(base, 'chat', '{"a":1}')
    t.same(await eventIds(base), [second.json<Ack>().id, ack.id])
  })

  await t.test('event type and delivery id', async (t) => {
    for (const [name, [provider, body, headers, type, id]] of Object.entries(READ)) {
      const sent = await deliver(base, provider, body, headers)
      t.equal(sent.status, 202, sent.text)
      const { facts } = await shown(base, sent.json<Ack>().id)
      const expected = {
        'Event type': type ?? 'none',
        'Delivery id': id ?? `sha256:${hash(body)}`,
        'Content type': headers['Content-Type'] ?? 'application/json',
        Provider: provider,
        'Trust mode': 'signed',
        Verified: 'yes',
        Verification: 'hmac-sha256 ok',
        'Source address': '127.0.0.1',
        Attempts: '1',
      }
      t.match(facts, expected, name)
    }
  })

  await t.test('both spellings of the headers verify, and the neutral one wins', async (t) => {
    for (const provider of SIGNED) {
      const body = JSON.stringify({ spelling: provider })
      const neutral = signatureHeaders(provider, body)
      const real = signatureHeaders(provider, body, { spelling: 'real' })
      const wrong = { secret: 'another secret' }
      const wrongNeutral = signatureHeaders(provider, body, wrong)
      const wrongReal = signatureHeaders(provider, body, { ...wrong, spelling: 'real' })
      t.equal((await post(base, provider, body, neutral)).status, 202, `${provider} neutral`)
      t.equal((await post(base, provider, body, real)).status, 202, `${provider} real`)
      const right = { ...wrongReal, ...neutral }
      t.equal((await post(base, provider, body, right)).status, 202, `${provider} neutral right`)
      const beaten = { ...real, ...wrongNeutral }
      t.equal((await post(base, provider, body, beaten)).status, 401, `${provider} neutral wrong`)
    }
    const body = '{"time":"of both"}'
    const stale = { 'X-Slack-Request-Timestamp': '5', ...signatureHeaders('chat', body) }
    t.equal((await post(base, 'chat', body, stale)).status, 202, 'neutral time stamp wins')
  })

  await t.test('a handshake is verified first, then echoed, and stored never', async (t) => {
    const challenge = '3eZbrw1aBm2rZgRNFdxV <"&é'
    const body = JSON.stringify({ type: 'url_verification', challenge, token: 'ignored' })
    const before = await eventIds(base)
    for (const spelling of ['neutral', 'real'] as const) {
      const answer = await deliver(base, 'chat', body, {}, { spelling })
      t.equal(answer.status, 200)
      t.equal(answer.headers['content-type'], 'application/json')
      t.same(answer.json(), { challenge })
    }
    const time = { 'X-Chat-Request-Timestamp': String(now()) }
    const unsigned = await post(base, 'chat', body, time)
    t.equal(unsigned.status, 401, 'unsigned')
    t.equal((await post(base, 'chat', body)).status, 400, 'without time stamp')
    const wrong = await deliver(base, 'chat', body, {}, { secret: 'another' })
    t.equal(wrong.status, 401, 'wrongly signed')
    const stale = await deliver(base, 'chat', body, {}, { at: now() - 1_000 })
    t.equal(stale.status, 401, 'stale')
    for (const { text } of [unsigned, wrong, stale]) t.notMatch(text, /3eZbrw1aBm2rZgRNFdxV/)
    t.same(await eventIds(base), before)
    const ordinary = await deliver(base, 'code_host', body)
    t.equal(ordinary.status, 202, 'an ordinary event of another provider')
  })

  await t.test('forms are read as forms when their type says so', async (t) => {
    const typed = { 'Content-Type': 'Application/X-WWW-Form-Urlencoded; charset=utf-8' }
    for (const body of ['a=1', 'payload=%7B%7D', '[1]', 'no pairs']) {
      t.equal((await deliver(base, 'code_host', body, FORM_TYPE)).status, 202, body)
      t.equal((await deliver(base, 'code_host', body, typed)).status, 202, `${body}, typed`)
      t.equal((await deliver(base, 'code_host', body)).status, 400, `${body} as JSON`)
      const text = { 'Content-Type': 'text/plain' }
      t.equal((await deliver(base, 'code_host', body, text)).status, 400, `${body} as text`)
    }
    // JSON is JSON, whatever its type says.
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'nonsense']) {
      const sent = await deliver(base, 'payments', '{"d":1}', { 'Content-Type': type })
      t.equal(sent.status, 202, type)
    }
  })

  await t.test('header names count in any case', async (t) => {
    const body = '{"f":1}'
    const { 'X-CodeHost-Signature-256': value } = signatureHeaders('code_host', body)
    const head = `POST /webhooks/code_host HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: ${body.length}`
    const text = `${head}\r\nx-cOdEhOsT-sIgNaTuRe-256: ${value}\r\n\r\n${body}`
    const answer = await rawExchange(Number(new URL(base).port), text)
    t.match(answer.text, /^HTTP\/1\.1 202 /)
  })
})

t.test('without its current secret a provider is unconfigured, not disabled', async (t: Test) => {
  const [, postgres] = backends
  const { base } = await startHooks(t, postgres, {
    HOOKS_PAYMENTS_SECRET: '',
    HOOKS_CODE_HOST_SECRET: '',
    HOOKS_CODE_HOST_SECRET_PREVIOUS: SECRETS.code_host,
  })
  const body = '{}'
  const call = (provider: Signed, headers = signatureHeaders(provider, body)) =>
    ({ call: `POST /webhooks/${provider}`, body, headers }) as const
  await enable(base, 'payments', false)
  await refuseAll(t, { service: 'hooks', base, state: () => eventIds(base) }, [
    [{ call: 'POST /webhooks/payments', body: LONG }, 404, undefined, /No signed provider/],
    [call('payments'), 404, undefined, /No signed provider/],
    [call('code_host'), 404],
    [call('code_host', { 'X-CodeHost-Signature-256': '' }), 404],
  ])
})
