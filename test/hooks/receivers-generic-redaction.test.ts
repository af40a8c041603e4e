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
    const harmless = { 'X-Event-Type': 'plain', 'User-Agent': 'sender/1.0 <b>', 'X-Signed': 'no' }
    const headers = await stored('generic/lan', { ...sent, ...harmless })
    for (const name of NAMES) t.equal(headers[name.toLowerCase()], REDACTED, name)
    t.match(headers, {
      'x-event-type': 'plain',
      'user-agent': 'sender/1.0 <b>',
      'x-signed': 'no',
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
    const values = Array.from({ length: 7 }, (_, at) => plant(`in-address-${at}`))
    const headers = await stored('generic/lan', {
      Referer: `https://ci.example/run?token=${values[0]}&page=2#top`,
      'X-Original-URL': `/webhooks/generic/lan?a=1&token=${values[1]}`,
      'X-Forwarded-Uri': `/webhooks/generic/lan?TOKEN=${values[2]}`,
      'X-Original-URI': `/webhooks/generic/lan/${values[3]}?x=1`,
      'X-Rewrite-Url': `https://h.example/webhooks/generic/lan/${values[4]}`,
      Origin: `https://h.example/?access_token=${values[5]}`,
      Link: `<https://h.example/?a=b;token=${values[6]}>; rel="next"`,
    })
    t.equal(headers['referer'], `https://ci.example/run?token=${REDACTED}&page=2#top`)
    t.equal(headers['x-original-url'], `/webhooks/generic/lan?a=1&token=${REDACTED}`)
    t.equal(headers['x-forwarded-uri'], `/webhooks/generic/lan?TOKEN=${REDACTED}`)
    t.equal(headers['x-original-uri'], `/webhooks/generic/lan/${REDACTED}?x=1`)
    t.equal(headers['x-rewrite-url'], `https://h.example/webhooks/generic/lan/${REDACTED}`)
    t.equal(headers['origin'], `https://h.example/?access_token=${REDACTED}`)
    t.match(headers['link'], /\?a=b;token=«redacted»/)
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
