import { t } from 'tap'
import type { Test } from 'tap'
import { onPostgres } from '../helpers/backends.ts'
import { rawExchange, request } from '../helpers/http.ts'
import type { RequestOptions } from '../helpers/http.ts'
import { refuseAll } from '../helpers/refusals.ts'
import type { Refusal } from '../helpers/refusals.ts'
import { keepSecret, secret } from '../helpers/secrets.ts'
import { startServer } from '../helpers/server.ts'
import {
  SIGNED,
  addProvider,
  deliver,
  enable,
  eventIds,
  payloadOf,
  post,
  shown,
  signatureHeaders,
  startHooks,
} from '../helpers/hooks.ts'
import type { Ack, Shown } from '../helpers/hooks.ts'

const LIMIT = 4_096
const LONG = 'x'.repeat(LIMIT + 1)
const REDACTED = '«redacted»'

/** Header names whose value must never be stored, each sent with a secret of its own. */
const NAMES = [
  'Authorization',
  'Proxy-Authorization',
  'Cookie',
  'Token',
  'X-CodeHost-Signature-256',
  'X-Hub-Signature-256',
  'X-Hub-Signature',
  'Payments-Signature',
  'Stripe-Signature',
  'X-Chat-Signature',
  'X-Slack-Signature',
  'X-Webhook-Token',
  'X-Gitlab-Token',
  'X-Client-Secret',
  'X-SECRET-THING',
  'Api-Key',
  'X-Api-Key',
  'ApiKey',
  'X-APIKEY-2',
  'X-Amz-Security-Token',
  'X-Auth',
  'X-Authenticated-By',
  'Webhook-Signature',
  'X-Functions-Key',
  'Ocp-Apim-Subscription-Key',
  'X-Access-Key',
  'X-Goog-Channel-Token',
  'X-Password',
  'X-Passwd-2',
  'X-User-Pass',
  'X-Pwd',
  'X-Passphrase',
  'X-Credentials',
  'X-Session-Id',
  'X-JWT-Assertion',
  'X-Bearer',
  'X-Shopify-Hmac-Sha256',
  'Paypal-Transmission-Sig',
  'Aeg-Sas-Key',
  'Set-Cookie',
] as const

/** Names that only look like these: their values are of use and open nothing. */
const HARMLESS = [
  'Idempotency-Key',
  'X-Idempotency-Key',
  'X-Event-Key',
  'X-Routing-Key',
  'X-Message-Key',
  'X-GitHub-Hook-ID',
  'X-GitHub-Delivery',
  'X-Public-Key-Id',
  'X-Passenger-Count',
  'X-Keyword',
  'X-Compass',
  'X-Signed',
] as const

type Headers = NonNullable<RequestOptions['headers']>

function bearer(token: string): Headers {
  return { Authorization: `Bearer ${token}` }
}

function header(token: string): Headers {
  return { 'X-Webhook-Token': token }
}

await onPostgres(t, 'generic receivers', async (t: Test, backend) => {
  const { base, server, env } = await startHooks(t, backend, { HOOKS_MAX_BODY: String(LIMIT) })
  const token = await addProvider(base, 'ci')
  const wrong = secret('wrong-token')
  await addProvider(base, 'lan', { open: true })
  const idle = await addProvider(base, 'idle', { enabled: false })
  const status = async (path: string, headers = {}, body = '{}'): Promise<number> =>
    (await post(base, `generic/${path}`, body, headers)).status
  const sent = (path: string, headers: Headers = {}, body = '{}') => ({
    call: `POST /webhooks/generic/${path}`,
    ...{ headers, body },
  })
  const refused = (t: Test, rows: readonly Refusal[]): Promise<void> =>
    refuseAll(t, { service: 'hooks', base, state: () => eventIds(base) }, rows)

  await t.test('404 comes before everything else', async (t: Test) => {
    const longest = 'a'.repeat(64)
    await addProvider(base, longest, { open: true })
    t.equal(await status(longest), 202, '64 characters')
    const bad = [
      'nobody',
      'CI',
      '-ci',
      '_ci',
      'ci%20',
      'c.i',
      'ci%2Fci',
      `${longest}a`,
      '%',
      '%00',
    ]
    // The queue's and the signed providers' names lead nowhere here.
    const others = ['code_host', 'chat', 'payments', 'generic:ci', 'queue:x']
    await refused(t, [
      ...bad.map((name): Refusal => [sent(name, bearer(wrong), LONG), 404]),
      ...others.map((name): Refusal => [sent(name), 404]),
      // A token in the path, and a path that is too long.
      [sent('nobody/some-token'), 404],
      [sent('ci/a/b'), 404],
    ])
  })

  await t.test('disabled comes before the length, and that before the token', async (t: Test) => {
    await refused(t, [
      [sent('idle', bearer(idle)), 403, undefined, /disabled/],
      [sent('idle', bearer(wrong), LONG), 403, undefined, /disabled/],
      [sent('ci', {}, LONG), 413],
      [sent('ci', bearer(wrong), LONG), 413],
      [sent('lan', {}, LONG), 413],
    ])
    t.equal(await status('lan', {}, LONG.slice(1)), 202, 'the limit itself')
    await enable(base, 'generic:idle', true)
    t.equal(await status('idle', bearer(idle)), 202, 'enabled')
    await enable(base, 'generic:idle', false)
    t.equal(await status('idle', bearer(idle)), 403, 'disabled again')
  })

  await t.test('a token is taken from four places', async (t) => {
    t.equal(await status('ci', bearer(token)), 202, 'Authorization')
    t.equal(await status('ci', { authorization: `bearer ${token}` }), 202, 'scheme in lower case')
    t.equal(await status('ci', header(token)), 202, 'X-Webhook-Token')
    t.equal(await status(`ci?token=${token}`), 202, 'query')
    t.equal(
      await status(`ci?a=1&token=${encodeURIComponent(token)}&b=2`),
      202,
      'in a longer query',
    )
    t.equal(await status(`ci/${token}`), 202, 'path')
  })

  await t.test('a missing, empty or wrong token is 403', async (t: Test) => {
    const bad = ['', ' ', wrong, token.slice(1), `${token}x`, token.toUpperCase()]
    const text = /missing or wrong/
    const calls = [
      sent('ci'),
      ...bad.flatMap((value) => [
        sent('ci', bearer(value)),
        sent('ci', header(value)),
        sent(`ci?token=${encodeURIComponent(value)}`),
      ]),
      sent(`ci/${wrong}`),
      sent(`ci?other=${token}`),
      sent('ci', { 'X-Token': token }),
      sent('ci', { 'X-Webhook-Token': [token, token] }),
      // Another provider's token.
      sent('ci', bearer(idle)),
    ]
    await refused(
      t,
      calls.map((call): Refusal => [call, 403, undefined, text]),
    )
    const answer = await post(base, `generic/ci/${wrong}`, '{}')
    t.match(answer.json(), { title: 'Forbidden', instance: '/webhooks/generic/ci' })
  })

  await t.test('of several tokens the first place decides', async (t: Test) => {
    await refused(t, [
      [sent(`ci/${token}?token=${token}`, { ...bearer(wrong), ...header(token) }), 403],
      [sent(`ci/${token}?token=${token}`, header(wrong)), 403],
      [sent(`ci/${token}?token=${wrong}`), 403],
      // An empty one decides too.
      [sent(`ci/${token}`, bearer('')), 403],
      [sent(`ci/${token}?token=`), 403],
    ])
    t.equal(
      await status(`ci/${wrong}?token=${wrong}`, { ...bearer(token), ...header(wrong) }),
      202,
    )
    t.equal(await status(`ci/${wrong}?token=${wrong}`, header(token)), 202)
    t.equal(await status(`ci/${wrong}?token=${token}`), 202)
    const basic = { Authorization: 'Basic dXNlcjpwYXNz' }
    t.equal(await status(`ci/${token}`, basic), 202, 'another scheme presents no token')
    t.equal(await status(`lan/any?token=${wrong}`), 202, 'an open one ignores tokens')
  })

  await t.test('stored events say how they were trusted', async (t) => {
    const typed = { 'X-Event-Type': 'deploy', 'X-Delivery-Id': 'd-1', ...bearer(token) }
    const byToken = (await post(base, 'generic/ci', '{}', typed)).json<Ack>()
    t.match(byToken, { provider: 'generic:ci', trust_mode: 'token', verified: false })
    const { facts } = await shown(base, byToken.id)
    t.notOk('Verified' in facts, 'not "no", which reads like a failure')
    t.match(facts, {
      'Trust mode': 'token',
      Verification: 'token ok',
      'Event type': 'deploy',
      'Delivery id': 'd-1',
      Provider: 'generic:ci',
    })
    const open = (await post(base, 'generic/lan', 'bytes', bearer(wrong))).json<Ack>()
    t.match(open, { provider: 'generic:lan', trust_mode: 'open', verified: false })
    t.match((await shown(base, open.id)).facts, {
      'Trust mode': 'open',
      Verification: 'none',
      'Event type': 'none',
      'Delivery id': 'none',
    })
  })

  await t.test('delivery ids come from three headers, in order', async (t) => {
    const ids = { 'Webhook-Id': 'w', 'X-Delivery-Id': 'x', 'Idempotency-Key': 'i' }
    for (const expected of Object.entries(ids)) {
      const [name, id] = expected
      const sent = await post(base, 'generic/lan', name, ids)
      t.equal((await shown(base, sent.json<Ack>().id)).facts['Delivery id'], id, name)
      delete ids[name as keyof typeof ids]
    }
    const twice = [
      await post(base, 'generic/lan', 'same'),
      await post(base, 'generic/lan', 'same'),
    ]
    const [one, two] = twice.map((answer) => answer.json<Ack>().id)
    t.not(one, two, 'without an id the same bytes are two events')
  })

  await t.test('a content type changes nothing', async (t) => {
    for (const type of ['text/xml', 'nonsense', 'image/png; x="y"']) {
      for (const body of ['{"a":', Buffer.from([0, 255, 254])]) {
        const sent = await post(base, 'generic/lan', body, { 'Content-Type': type })
        t.equal(sent.status, 202, type)
        t.ok((await payloadOf(base, sent.json<Ack>().id)).equals(Buffer.from(body)))
      }
    }
  })

  // Every secret here is registered: the run fails when one turns up in a log, a page or a stream.
  const planted: string[] = []
  const plant = (name: string): string => {
    const value = secret(name.toLowerCase())
    planted.push(value)
    return value
  }
  async function stored(path: string, headers: Record<string, string>): Promise<Shown['headers']> {
    const sent = await post(base, path, '{}', headers)
    t.equal(sent.status, 202, sent.text)
    return (await shown(base, sent.json<Ack>().id)).headers
  }

  await t.test('secret headers are stored as a mark', async (t) => {
    const secrets = Object.fromEntries(NAMES.map((name) => [name, plant(name)]))
    const plain = Object.fromEntries(HARMLESS.map((name) => [name, `of ${name}`]))
    const harmless = { ...plain, 'X-Event-Type': 'plain', 'User-Agent': 'sender/1.0 <b>' }
    const headers = await stored('generic/lan', { ...secrets, ...harmless })
    for (const name of NAMES) t.equal(headers[name.toLowerCase()], REDACTED, name)
    for (const name of HARMLESS) t.equal(headers[name.toLowerCase()], `of ${name}`, name)
    t.match(headers, {
      'x-event-type': 'plain',
      'user-agent': 'sender/1.0 <b>',
      'content-type': 'application/json',
      host: new URL(base).host,
    })
  })

  await t.test('signatures of verified deliveries are stored as a mark', async (t) => {
    for (const provider of SIGNED) {
      for (const spelling of ['neutral', 'real'] as const) {
        const body = JSON.stringify({ provider, spelling })
        const signed = signatureHeaders(provider, body, { spelling })
        const [[name = '', value = ''] = []] = Object.entries(signed)
        planted.push(keepSecret('signature', value.slice(-64)))
        const sent = await deliver(base, provider, body, signed)
        const { headers } = await shown(base, sent.json<Ack>().id)
        t.equal(headers[name.toLowerCase()], REDACTED, name)
      }
    }
  })

  await t.test('a token in an address is stored as a mark', async (t) => {
    const values = Array.from({ length: 12 }, (_, at) => plant(`in-address-${at}`))
    const headers = await stored('generic/lan', {
      Referer: `https://ci.example/run?token=${values[0]}&page=2#top`,
      'X-Original-URL': `/webhooks/generic/lan?a=1&token=${values[1]}`,
      'X-Forwarded-Uri': `/webhooks/generic/lan?TOKEN=${values[2]}`,
      'X-Original-URI': `/webhooks/generic/lan/${values[3]}?x=1`,
      'X-Rewrite-Url': `https://h.example/webhooks/generic/lan/${values[4]}`,
      Origin: `https://h.example/?access_token=${values[5]}`,
      Link: `<https://h.example/?a=b;token=${values[6]}>; rel="next"`,
      'X-Request-Url': `https://h.example/?sig=${values[7]}&api-version=1&Password=${values[8]}`,
      'X-Callback': `callback code_key=${values[9]}`,
      'X-Return-To': `/in?next=https://h.example/?token=${values[10]}?x#access_token=${values[11]}`,
    })
    t.equal(headers['referer'], `https://ci.example/run?token=${REDACTED}&page=2#top`)
    t.equal(headers['x-original-url'], `/webhooks/generic/lan?a=1&token=${REDACTED}`)
    t.equal(headers['x-forwarded-uri'], `/webhooks/generic/lan?TOKEN=${REDACTED}`)
    t.equal(headers['x-original-uri'], `/webhooks/generic/lan/${REDACTED}?x=1`)
    t.equal(headers['x-rewrite-url'], `https://h.example/webhooks/generic/lan/${REDACTED}`)
    t.equal(headers['origin'], `https://h.example/?access_token=${REDACTED}`)
    t.match(headers['link'], /\?a=b;token=«redacted»/)
    t.equal(
      headers['x-request-url'],
      `https://h.example/?sig=${REDACTED}&api-version=1&Password=${REDACTED}`,
    )
    t.equal(headers['x-callback'], `callback code_key=${REDACTED}`)
    const nested = `/in?next=https://h.example/?token=${REDACTED}#access_token=${REDACTED}`
    t.equal(headers['x-return-to'], nested)
  })

  await t.test(
    'a secret in the query or the path of a request is never stored or echoed',
    async (t) => {
      const values = ['query', 'path', 'long-path', 'wrong-query', 'unknown'].map(plant)
      const paths = [
        `generic/ci?token=${token}&page=2&api%5fkey=${values[0]}&next=%2F%3Fsig%3D${values[0]}`,
        `generic/ci/${token}`,
        `generic/ci/${values[1]}`,
        `generic/ci/${values[2]}/more`,
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
      ...[
        `hOST: ${host}`,
        'X-Two: b',
        'content-LENGTH: 2',
        'X-One: a',
        'x-TWO: c',
        'constructor: d',
      ],
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
    t.match((await shown(base, id)).headers, { 'x-two': 'b, c', 'x-one': 'a', constructor: 'd' })
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
    t.ok(planted.length > 35)
    for (const value of planted) t.notOk(all.includes(value))
    t.match(all, /redacted/)
  })

  await t.test('a token provider without a token is disabled', async (t: Test) => {
    // Nothing but a hand at the database could do this: even then an empty token matches nothing.
    const changed = `update hooks.providers set enabled = true, token_hash =
      case name when 'generic:idle' then sha256('') end where name in ('generic:ci', 'generic:idle')`
    await backend.query(env, changed)
    const again = await startServer(t, { services: ['hooks'], env })
    const none = ['ci', `ci/${token}`, 'ci?token=', `ci?token=${token}`]
    const state = () => eventIds(again.hooks)
    await refuseAll(t, { service: 'hooks', base: again.hooks, state }, [
      ...none.map((path): Refusal => [sent(path), 403, undefined, /disabled/]),
      [sent('idle?token=', bearer('')), 403, undefined, /missing or wrong/],
      [sent('idle?token=', header('')), 403, undefined, /missing or wrong/],
    ])
  })
})
