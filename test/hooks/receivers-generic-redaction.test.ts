import { t } from 'tap'
import type { Test } from 'tap'
import { onPostgres } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import { keepSecret, secret } from '../helpers/secrets.ts'
import {
  addProvider,
  deliver,
  post,
  shown,
  SIGNED,
  signatureHeaders,
  startHooks,
} from '../helpers/signing-setup.ts'
import type { Ack } from '../helpers/signing-setup.ts'

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

// Every secret here is registered: the run fails when one turns up in a log, a page or a stream.
await onPostgres(t, 'redaction', async (t: Test, backend) => {
  const { base, server, env } = await startHooks(t, backend)
  await addProvider(base, 'lan', { open: true })
  const token = await addProvider(base, 'ci')
  const planted: string[] = []
  const plant = (name: string): string => {
    const value = secret(name.toLowerCase())
    planted.push(value)
    return value
  }
  async function stored(path: string, headers: Record<string, string>): Promise<Headers> {
    const sent = await post(base, path, '{}', headers)
    t.equal(sent.status, 202, sent.text)
    return (await shown(base, sent.json<Ack>().id)).headers
  }
  type Headers = Readonly<Record<string, string>>

  await t.test('secret headers are stored as a mark', async (t) => {
    const sent = Object.fromEntries(NAMES.map((name) => [name, plant(name)]))
    const plain = Object.fromEntries(HARMLESS.map((name) => [name, `of ${name}`]))
    const harmless = { ...plain, 'X-Event-Type': 'plain', 'User-Agent': 'sender/1.0 <b>' }
    const headers = await stored('generic/lan', { ...sent, ...harmless })
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

  await t.test('the query and the path of a request are never stored or echoed', async (t) => {
    const values = ['query', 'path', 'long-path', 'wrong-query', 'unknown'].map(plant)
    const paths = [
      `generic/ci?token=${token}&x=${values[0]}`,
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
})
