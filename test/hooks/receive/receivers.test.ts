import { hash } from 'node:crypto'
import { t, type Test } from 'tap'
import { VECTORS } from '../../fixtures/preset-vectors.ts'
import { onPostgres } from '../../helpers/backends.ts'
import { rawExchange, request, type RequestOptions } from '../../helpers/http.ts'
import { expectStatus, refuseAll, type Refusal } from '../../helpers/refusals.ts'
import { secret } from '../../helpers/secrets.ts'
import {
  FORM_TYPE,
  SIGNED,
  addProvider,
  deliver,
  enable,
  eventIds,
  now,
  post,
  shown,
  signatureHeaders,
  startHooks,
  store,
  type Ack,
  type Bytes,
  type Fields,
  type SignOptions,
  type Signed,
} from '../../helpers/hooks.ts'

const LIMIT = 4_096
const LONG = 'x'.repeat(LIMIT + 1)
const WRONG = { 'X-CodeHost-Signature-256': `sha256=${'0'.repeat(64)}` }
const REDACTED = '«redacted»'

/** Header names whose value must never be stored, each sent with a secret of its own. */
const NAMES = `
  Authorization Proxy-Authorization Cookie Set-Cookie X-CodeHost-Signature-256 X-Hub-Signature-256
  Payments-Signature Webhook-Signature X-Shopify-Hmac-Sha256 Paypal-Transmission-Sig Aeg-Sas-Key
  X-Webhook-Token X-Amz-Security-Token X-Goog-Channel-Token X-Client-Secret Api-Key X-Api-Key X-Auth
  X-Functions-Key Ocp-Apim-Subscription-Key X-Password X-Pwd X-Passphrase X-Credentials X-Session-Id
  X-JWT-Assertion X-Bearer
`
  .trim()
  .split(/\s+/)

/** Names that only look like these: their values are of use and open nothing. */
const HARMLESS = `
  Idempotency-Key X-Event-Key X-Message-Key X-GitHub-Hook-ID X-Public-Key-Id X-Passenger-Count X-Keyword
  X-Compass
`
  .trim()
  .split(/\s+/)

type Headers = NonNullable<RequestOptions['headers']>

function bearer(token: string) {
  return { Authorization: `Bearer ${token}` }
}

function header(token: string) {
  return { 'X-Webhook-Token': token }
}

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
  'both: the neutral ones win': [
    'code_host',
    '{"both":true}',
    { ...real, ...neutral, 'X-CodeHost-Delivery': 'd-3' },
    'push',
    'd-3',
  ],
  'a form with headers': ['code_host', form, { ...FORM_TYPE, ...real }, 'ping', 'd-2'],
  'payments, whatever the headers': ['payments', '{"id":"evt_1","type":"x"}', real, 'x', 'evt_1'],
  'payments, nothing': ['payments', '{"n":2}', {}, null, null],
  'payments, a number': ['payments', '{"id":7,"type":["a"]}', {}, null, '7'],
  'payments, a number that is not exact': ['payments', '{"id":9007199254740993}', {}, null, null],
  'chat, event': ['chat', event, {}, 'app_mention', 'Ev08MFMKH6'],
  'chat, type without event': ['chat', '{"type":"limited","event_id":"E2"}', {}, 'limited', 'E2'],
  'chat, event without type': ['chat', '{"type":"x","event":{},"event_id":"E3"}', {}, 'x', 'E3'],
  'chat, command': [
    'chat',
    command,
    FORM_TYPE,
    '/webhook-collect',
    '398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c',
  ],
  'control characters': ['payments', '{"id":"evt_2","type":"a\\u0000b\\n"}', {}, 'ab', 'evt_2'],
  'a type cut within a character': ['payments', cut, {}, `${'a'.repeat(254)}\ufffd`, 'evt_3'],
  'half a character': [
    'payments',
    halves,
    {},
    'x\ufffd',
    `sha256:${hash('sha256', 'evt_4\ufffd')}`,
  ],
  'an id that is too long': [
    'payments',
    longId,
    {},
    't',
    `sha256:${hash('sha256', 'i'.repeat(256))}`,
  ],
}

await onPostgres(t, 'receivers', async (t, backend) => {
  const { base, server, env } = await startHooks(t, backend, { HOOKS_MAX_BODY: String(LIMIT) })
  const token = await addProvider(base, 'ci')
  const wrong = secret('wrong-token')
  await addProvider(base, 'lan', { open: true })
  const idle = await addProvider(base, 'idle', { enabled: false })
  const status = async (path: string, headers = {}, body = '{}') =>
    (await post(base, path, body, headers)).status
  const sent = (path: string, headers: Headers = {}, body: Bytes = '{}') => ({
    call: `POST /webhooks/${path}`,
    headers,
    body,
  })
  const refused = (t: Test, rows: readonly Refusal[]) =>
    refuseAll(t, { service: 'hooks', base, state: () => eventIds(base) }, rows)

  await t.test('404 comes before everything else', async (t) => {
    const longest = 'a'.repeat(64)
    const bad = ['nobody', '-ci', 'ci%20', 'ci%2Fci', `${longest}a`, '%00']
    // The queue's and the signed providers' names lead nowhere here.
    const others = ['code_host', 'generic:ci', 'queue:x']
    await refused(t, [
      ...bad.map((name): Refusal => [sent(`generic/${name}`, bearer(wrong), LONG), 404]),
      ...others.map((name): Refusal => [sent(`generic/${name}`), 404]),
      // A token in the path, and a path that is too long.
      [sent('generic/nobody/some-token'), 404],
      [sent('generic/ci/a/b'), 404],
    ])
  })

  await t.test('disabled comes before the length, and that before the token', async (t) => {
    await refused(t, [
      [sent('generic/idle', bearer(idle)), 403, /disabled/],
      [sent('generic/idle', bearer(wrong), LONG), 403, /disabled/],
      [sent('generic/ci', {}, LONG), 413],
      [sent('generic/ci', bearer(wrong), LONG), 413],
    ])
    t.equal(await status('generic/lan', {}, LONG.slice(1)), 202, 'the limit itself')
    await enable(base, 'generic:idle', true)
    t.equal(await status('generic/idle', bearer(idle)), 202, 'enabled')
  })

  await t.test('a token is taken from where senders put it', async (t) => {
    const encoded = Buffer.from(`anybody:${token}`).toString('base64')
    for (const headers of [
      bearer(token),
      { authorization: `bearer ${token}` },
      { Authorization: `Token ${token}` },
      { Authorization: `Basic ${encoded}` },
      { Authorization: token },
      header(token),
      { 'X-Gitlab-Token': token },
      { 'X-API-Key': token },
      { 'X-Auth-Token': token },
    ]) {
      t.equal(await status('generic/ci', headers), 202, Object.keys(headers).join())
    }
    for (const rest of [
      `?token=${token}`,
      `?a=1&token=${token}&b=2`,
      `/${token}`,
      // A slash at the end.
      `/?token=${token}`,
      `/${token}/`,
    ]) {
      t.equal(await status(`generic/ci${rest}`), 202, rest)
    }
    for (const slashes of ['/', '//']) {
      t.equal(await status(`generic/ci${slashes}`, bearer(token)), 202, slashes)
    }
  })

  await t.test('a missing, empty or wrong token is 403', async (t) => {
    const bad = ['', wrong, token.slice(1), `${token}x`]
    const calls = [
      sent('generic/ci'),
      sent('generic/ci', { Authorization: `Digest ${token}` }),
      sent('generic/ci', {
        Authorization: `Basic ${Buffer.from(`:${token}:`).toString('base64')}`,
      }),
      ...bad.flatMap((value) => [
        sent('generic/ci', bearer(value)),
        sent('generic/ci', { Authorization: value }),
        sent('generic/ci', header(value)),
        sent(`generic/ci?token=${value}`),
      ]),
      sent(`generic/ci/${wrong}`),
      sent(`generic/ci?other=${token}`),
      sent('generic/ci', { 'X-Webhook-Token': [token, token] }),
      // Another provider's token.
      sent('generic/ci', bearer(idle)),
    ]
    await refused(
      t,
      calls.map((call): Refusal => [call, 403, /missing or wrong/]),
    )
  })

  await t.test('of several tokens the first place decides', async (t) => {
    await refused(t, [
      [sent(`generic/ci/${token}?token=${token}`, { ...bearer(wrong), ...header(token) }), 403],
      [sent(`generic/ci?token=${token}`, header(wrong)), 403],
      [sent(`generic/ci/${token}?token=${wrong}`), 403],
      // An empty one decides too.
      [sent(`generic/ci/${token}`, bearer('')), 403],
    ])
    t.equal(
      await status(`generic/ci/${wrong}?token=${wrong}`, { ...bearer(token), ...header(wrong) }),
      202,
    )
    t.equal(await status(`generic/ci/${wrong}?token=${token}`), 202)
    const basic = { Authorization: 'Basic dXNlcjpwYXNz' }
    t.equal(await status(`generic/ci/${token}`, basic), 202, 'another scheme presents no token')
    t.equal(await status(`generic/lan/any?token=${wrong}`), 202, 'an open one ignores tokens')
  })

  await t.test('delivery ids come from three headers, in order', async (t) => {
    const ids = { 'Webhook-Id': 'w', 'X-Delivery-Id': 'x', 'Idempotency-Key': 'i' }
    for (const [name, id] of Object.entries(ids)) {
      const event = await store(base, 'lan', name, ids)
      t.equal((await shown(base, event)).facts['Delivery id'], id, name)
      delete ids[name as keyof typeof ids]
    }
    const twice = [await store(base, 'lan', 'same'), await store(base, 'lan', 'same')]
    t.not(twice[0], twice[1], 'without an id the same bytes are two events')
  })

  // Each request here is wrong in every later way too: what comes first decides.
  await t.test('the checks have an order', async (t) => {
    const signed = (body: Bytes, options: SignOptions = {}) =>
      sent('chat', signatureHeaders('chat', body, options), body)
    const { 'X-Chat-Signature': signature = '' } = signatureHeaders('chat', '{}')
    const time = { 'X-Chat-Request-Timestamp': String(now()) }
    const unknown = /No signed provider/
    const noTime = /X-Chat-Request-Timestamp/
    const noObjects = ['', 'x', '[1]', '"text"', 'null', '{"a":', '{} {}']
    await enable(base, 'chat', false)
    await refused(t, [
      [sent('nobody', WRONG, LONG), 404, unknown],
      [sent('generic', {}, LONG), 404, unknown],
      [sent('chat', {}, LONG), 403, /disabled/],
      [signed('{}'), 403, /disabled/],
    ])
    await enable(base, 'chat', true)
    await refused(t, [
      [sent('chat', {}, LONG), 413, /limit of 4096 bytes/],
      [sent('code_host', WRONG, LONG), 413, /limit/],
      [sent('chat', {}, 'x'), 400, noTime],
      [sent('chat', { 'X-Chat-Signature': signature }), 400, noTime],
      [sent('chat', time, 'x'), 401, /signature/],
      [sent('code_host', WRONG, 'x'), 401, /signature/],
      [signed('x', { at: now() - 400 }), 401, /signature/],
      [signed('x', { at: now() + 400 }), 401, /signature/],
      [signed('x', { secret: 'another' }), 401, /signature/],
      ...noObjects.map((body): Refusal => [signed(body), 400, /JSON object/]),
    ])
    const pieces = [LONG.slice(0, 9), LONG.slice(9)]
    const { status, text } = await post(base, 'code_host', pieces, WRONG)
    t.equal(status, 413, 'in pieces')
    t.notMatch(text, /[0-9a-f]{16}/)
    const answer = await post(base, 'code_host', 'x', WRONG)
    t.notMatch(answer.text, /[0-9a-f]{16}/, 'no signature in the answer')
  })

  await t.test('a slash at the end is the same address', async (t) => {
    const first = await deliver(base, 'code_host', '{"a":1}')
    const signed = signatureHeaders('code_host', '{"a":1}')
    for (const path of ['code_host/', '/code_host']) {
      const same = await post(base, path, '{"a":1}', signed)
      t.equal(same.json<Ack>().id, first.json<Ack>().id, path)
    }
  })

  await t.test('event type and delivery id', async (t) => {
    for (const [name, [provider, body, headers, type, id]] of Object.entries(READ)) {
      const sent = await expectStatus(202, deliver(base, provider, body, headers))
      const { facts } = await shown(base, sent.json<Ack>().id)
      const expected = {
        'Event type': type ?? 'none',
        'Delivery id': id ?? `sha256:${hash('sha256', body)}`,
        'Content type': headers['Content-Type'] ?? 'application/json',
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
      for (const [status, headers] of [
        [202, neutral],
        [202, real],
        [202, { ...wrongReal, ...neutral }],
        [401, { ...real, ...wrongNeutral }],
      ] as const) {
        const { status: got } = await post(base, provider, body, headers)
        t.equal(got, status, `${provider} ${Object.keys(headers)}`)
      }
    }
    const body = '{"time":"of both"}'
    const stale = { 'X-Slack-Request-Timestamp': '5', ...signatureHeaders('chat', body) }
    await expectStatus(202, post(base, 'chat', body, stale), 'neutral time stamp wins')
  })

  await t.test('a handshake is verified first, then echoed, and stored never', async (t) => {
    const challenge = '3eZbrw1aBm2rZgRNFdxV <"&é'
    const body = JSON.stringify({ type: 'url_verification', challenge, token: 'ignored' })
    const before = await eventIds(base)
    const answer = await deliver(base, 'chat', body, {}, { spelling: 'real' })
    t.same([answer.status, answer.json()], [200, { challenge }])
    const time = { 'X-Chat-Request-Timestamp': String(now()) }
    const unsigned = await expectStatus(401, post(base, 'chat', body, time))
    const wrong = await expectStatus(401, deliver(base, 'chat', body, {}, { secret: 'another' }))
    for (const { text } of [unsigned, wrong]) t.notMatch(text, /3eZbrw1aBm2rZgRNFdxV/)
    t.same(await eventIds(base), before)
  })

  await t.test('forms are read as forms when their type says so', async () => {
    const typed = { 'Content-Type': 'Application/X-WWW-Form-Urlencoded; charset=utf-8' }
    for (const body of ['a=1', '[1]', 'no pairs']) {
      await expectStatus(202, deliver(base, 'code_host', body, typed), `${body}, typed`)
      await expectStatus(400, deliver(base, 'code_host', body), `${body} as JSON`)
    }
    // JSON is JSON, whatever its type says.
    const plain = { 'Content-Type': 'text/plain' }
    await expectStatus(202, deliver(base, 'payments', '{"d":1}', plain))
  })

  // Every secret here is registered: the run fails when one turns up in a log, a page or a stream.
  const planted: string[] = []
  const plant = (name: string) => {
    const value = secret(name.toLowerCase())
    planted.push(value)
    return value
  }
  async function stored(headers: Fields) {
    return (await shown(base, await store(base, 'lan', '{}', headers))).headers
  }

  await t.test('secret headers are stored as a mark', async (t) => {
    const secrets = Object.fromEntries(NAMES.map((name) => [name, plant(name)]))
    const plain = Object.fromEntries(HARMLESS.map((name) => [name, `of ${name}`]))
    const headers = await stored({ ...secrets, ...plain })
    for (const name of NAMES) t.equal(headers[name.toLowerCase()], REDACTED, name)
    for (const name of HARMLESS) t.equal(headers[name.toLowerCase()], `of ${name}`, name)
  })

  await t.test('a token in an address is stored as a mark', async (t) => {
    const rows: readonly (readonly [string, (value: string) => string])[] = [
      ['Referer', (value) => `https://ci.example/run?token=${value}&page=2#top`],
      ['X-Original-URL', (value) => `/webhooks/generic/lan?a=1&token=${value}`],
      ['X-Forwarded-Uri', (value) => `/webhooks/generic/lan?TOKEN=${value}`],
      ['X-Original-URI', (value) => `/webhooks/generic/lan/${value}?x=1`],
      ['X-Rewrite-Url', (value) => `https://h.example/webhooks/generic/lan/${value}`],
      ['Link', (value) => `<https://h.example/?a=b;token=${value}>; rel="next"`],
      ['X-Request-Url', (value) => `https://h.example/?sig=${value}&v=1&Password=${value}`],
      ['X-Callback', (value) => `callback code_key=${value}`],
      ['X-Quoted', (value) => `id=1; token="${value}"; v=2`],
      ['X-Single', (value) => `token='${value}'`],
      [
        'X-Return-To',
        (value) => `/in?next=https://h.example/?token=${value}#access_token=${value}`,
      ],
    ]
    const sent = rows.map(([name, write]) => [name, write(plant(`in-${name}`))])
    const headers = await stored(Object.fromEntries(sent))
    for (const [name, write] of rows) {
      // The quotation marks of a value go with it.
      const expected = write(REDACTED).replace(/["'](«redacted»)["']/, '$1')
      t.equal(headers[name.toLowerCase()], expected, name)
    }
  })

  await t.test(
    'a secret in the query or the path of a request is never stored or echoed',
    async (t) => {
      const values = ['query', 'path', 'long-path', 'wrong-query', 'unknown'].map(plant)
      const paths = [
        `generic/ci?token=${token}&page=2&api%5fkey=${values[0]}&next=%2F%3Fsig%3D${values[0]}`,
        `generic/ci/${token}`,
        `generic/ci/${values[1]}`,
        `generic/ci?token=${values[3]}`,
        `generic/nobody/${values[4]}?token=${values[4]}`,
      ]
      for (const path of paths) {
        for (const method of ['POST', 'GET']) {
          const body = method === 'POST' ? '{}' : ''
          const answer = await request(`${base}/webhooks/${path}`, { method, body })
          for (const value of [token, ...values]) t.notOk(answer.text.includes(value), method)
        }
      }
      planted.push(token)
    },
  )

  await t.test('a request is stored as it was sent, its headers in order and case', async (t) => {
    const { host, port } = new URL(base)
    const lines = [
      `POST /webhooks/generic/ci/${token}?page=2&x=%22a%22&token=${token} HTTP/1.1`,
      `hOST: ${host}`,
      'X-Two: b',
      'content-LENGTH: 2',
      'X-One: a',
      'x-TWO: c',
      'constructor: d',
      `X-Token: ${token}`,
      'Connection: close',
    ]
    const { text } = await rawExchange(Number(port), `${lines.join('\r\n')}\r\n\r\n{}`)
    t.match(text, /^HTTP\/1.1 202 /)
    const id = Number(/"id":(\d+)/.exec(text)?.[1])
    const [row] = await backend.query(
      env,
      `select method, path, query, headers from hooks.events where id = ${id}`,
    )
    t.match(row, { method: 'POST', path: `/webhooks/generic/ci/${REDACTED}` })
    t.equal(row?.['query'], `page=2&x=%22a%22&token=${REDACTED}`)
    t.same(JSON.parse(String(row?.['headers'])), [
      ['hOST', host],
      ['X-Two', 'b'],
      ['content-LENGTH', '2'],
      ['X-One', 'a'],
      ['x-TWO', 'c'],
      ['constructor', 'd'],
      ['X-Token', REDACTED],
      ['Connection', 'close'],
    ])
    t.match((await shown(base, id)).headers, { 'x-two': 'b, c', constructor: 'd' })
  })

  await t.test('nothing secret stands in a log, a page, metrics or the database', async (t) => {
    const pages = ['/', '/log', '/log?rejected=1', '/providers', '/settings', '/metrics']
    const texts = await Promise.all(pages.map(async (path) => (await request(base + path)).text))
    await server.stop()
    const rows = await backend.query(
      env,
      `select e::text as text from hooks.events e union all
       select r::text from hooks.rejections r union all
       select p::text from hooks.providers p`,
    )
    t.ok(rows.length > 10)
    const all = [...server.logs(), ...texts, ...rows.map((row) => String(row['text']))].join('\n')
    t.ok(planted.length > 30)
    for (const value of planted) t.notOk(all.includes(value))
    t.match(all, /redacted/)
  })
})
