import { t } from 'tap'
import { PRESETS } from '../../services/hooks/schemes/presets/presets.ts'
import { backends } from '../helpers/backends.ts'
import {
  enable,
  eventIds,
  FORM_TYPE,
  post,
  postForm,
  refusals,
  shown,
  startHooks,
} from '../helpers/hooks.ts'
import { request } from '../helpers/http.ts'
import { presetSender, sendingTo } from '../helpers/preset-senders.ts'
import { jwt, mac, sha256 } from '../helpers/preset-signing.ts'
import { keepSecret } from '../helpers/secrets.ts'
import { secretKey } from '../helpers/senders.ts'
import { until } from '../helpers/until.ts'

type Headers = Readonly<Record<string, string>>

const [, postgres] = backends
const { base } = await startHooks(t, postgres, { GATEHOUSE_SECRET_KEY: secretKey() })

/** Makes a provider of a scheme, enabled; gives its secret. */
async function add(name: string, scheme: string): Promise<string> {
  const secret = presetSender(scheme).makeSecret()
  const made = await postForm(base, '/providers', { name, trust_mode: 'signed', scheme, secret })
  if (made.status !== 200) throw new Error(`${name} was not made: ${made.text.slice(0, 200)}`)
  await enable(base, `generic:${name}`, true)
  return secret
}

for (const scheme of [
  'github',
  'stripe',
  'telegram',
  'sentry',
  'meta',
  'dropbox',
  'trello',
  'asana',
  'woocommerce',
]) {
  await add(scheme, scheme)
}

await t.test('a delivery with the headers of another sender says whose they are', async () => {
  for (const [to, from, title] of [
    ['github', 'sentry', 'Sentry: scheme sentry'],
    ['stripe', 'lemon-squeezy', 'Lemon Squeezy: scheme lemon-squeezy'],
    ['telegram', 'shopify', 'Shopify: scheme shopify'],
    ['sentry', 'standard', 'Standard Webhooks: scheme standard'],
  ] as const) {
    const sender = presetSender(from)
    const secret = sender.makeSecret()
    const sending = sendingTo(base, sender, secret)
    await post(base, `generic/${to}`, sending.body, await sender.sign(secret, sending))
    const expected = new RegExp(`missing; the headers are those of ${title}`)
    await until(async () => {
      const listed = await refusals(base, `&provider=generic:${to}`)
      return listed.some(({ reason }) => expected.test(reason))
    }, `${to} to be told of ${from}`)
  }
})

const ZOOM = '{"event":"endpoint.url_validation","payload":{"plainToken":"qgg8"}}'
const GRAPH = { trust_mode: 'signed', scheme: 'microsoft-graph' }
const HOOKSHOT = { 'User-Agent': 'WooCommerce/10.1.0 Hookshot (WordPress/6.8)' }
const TWITCH = { 'Twitch-Eventsub-Message-Type': 'webhook_callback_verification' }

await t.test('checks of an address are answered as the sender asks, and not stored', async (t) => {
  const before = await eventIds(base)
  const text = 'text/plain'
  const cases: readonly (readonly [string, 'GET' | 'HEAD' | 'POST', Headers, number, string])[] = [
    [
      'meta?hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token=x',
      'GET',
      {},
      200,
      '1158201444',
    ],
    ['meta?hub.challenge=1158201444', 'GET', {}, 405, ''],
    ['dropbox?challenge=abc%20d', 'GET', {}, 200, 'abc d'],
    ['dropbox', 'GET', {}, 405, ''],
    ['dropbox?challenge=%0A', 'GET', {}, 405, ''],
    ['trello', 'HEAD', {}, 200, ''],
    ['trello', 'GET', {}, 405, ''],
    ['github?challenge=abc', 'GET', {}, 405, ''],
    ['nobody?challenge=abc', 'GET', {}, 405, ''],
    ['asana', 'POST', { 'X-Hook-Secret': 'b537207f20cbfa02357cf448134da559' }, 200, ''],
    ['woocommerce', 'POST', HOOKSHOT, 200, ''],
    ['woocommerce', 'POST', { ...HOOKSHOT, 'X-WC-Webhook-Signature': 'eA==' }, 403, ''],
    ['woocommerce', 'POST', { 'User-Agent': 'curl/8' }, 403, ''],
    ['shop', 'POST', HOOKSHOT, 404, ''],
  ]
  for (const [path, method, headers, status, body] of cases) {
    const answer = await request(`${base}/webhooks/generic/${path}`, { method, headers })
    t.equal(answer.status, status, `${method} ${path}`)
    if (status !== 200) continue
    t.equal(answer.text, body)
    if (body !== '')
      t.match(answer.headers, { 'content-type': text, 'content-security-policy': 'sandbox' })
    t.equal(answer.headers['x-content-type-options'], 'nosniff')
  }
  const graph = await postForm(base, '/providers', { name: 'graph', ...GRAPH })
  const [, token = ''] = /id="made-token"[^>]*><code>([^<]+)</.exec(graph.text) ?? []
  keepSecret('graph', token)
  await enable(base, 'generic:graph', true)
  const validated = `generic/graph?token=${token}&validationToken=Validation%3A+1`
  t.match(await post(base, validated, ''), { status: 200, text: 'Validation: 1' })
  t.equal((await post(base, 'generic/graph?validationToken=1', '')).status, 403)
  const asana = await post(base, 'generic/asana', '', { 'X-Hook-Secret': 'b537207f20cbfa02' })
  t.match(asana.headers, { 'x-hook-secret': 'b537207f20cbfa02' })
  for (const [scheme, body, status, expected, more] of [
    ['discord', '{"type":0}', 204, /^$/, {}],
    ['discord', '{"type":1}', 200, /^\{"type":1\}$/, {}],
    ['zoom', ZOOM, 200, /^\{"plainToken":"qgg8","encryptedToken":"[0-9a-f]{64}"\}$/, {}],
    ['twitch', '{"challenge":"pogchamp"}', 200, /^pogchamp$/, TWITCH],
  ] as const) {
    const sender = presetSender(scheme)
    const name = `check-${status}-${scheme}-${body.length}`
    const secret = await add(name, scheme)
    const signing = { ...sendingTo(base, sender, secret), body }
    const headers = { ...(await sender.sign(secret, signing)), ...more }
    const answer = await post(base, `generic/${name}`, body, headers)
    t.match(answer, { status, text: expected }, scheme)
    if (scheme === 'discord') t.equal(answer.headers['content-type'], 'application/json')
    const stranger = { ...(await sender.sign(sender.makeSecret(), signing)), ...more }
    t.equal((await post(base, `generic/${name}`, body, stranger)).status, sender.refused)
  }
  t.same(await eventIds(base), before)
})

await t.test('a query is signed with the address, and takes nothing of the body', async (t) => {
  const sender = presetSender('square')
  const secret = await add('till', 'square')
  const url = `${base}/webhooks/generic/till?till=1`
  const sending = { ...sendingTo(base, sender, secret), url }
  const headers = await sender.sign(secret, sending)
  const { body } = sending
  const half = Math.floor(body.length / 2)
  const moved = `generic/till?till=1${body.slice(0, half)}`
  for (const [path, sent, status] of [
    ['generic/till?till=1', body, 202],
    ['generic/till?till=2', body, 403],
    ['generic/till', body, 403],
    [moved.replaceAll('"', '%22'), body.slice(half), 403],
    [moved, body.slice(half), 403],
  ] as const) {
    t.equal((await post(base, path, sent, headers)).status, status, path)
  }
})

await t.test('of many signatures by a public key the first four count', async (t) => {
  const sender = presetSender('standard-v1a')
  const secret = await add('many', 'standard-v1a')
  for (const [others, status] of [
    [3, 202],
    [4, 403],
  ] as const) {
    const sending = sendingTo(base, sender, secret)
    const right = await sender.sign(secret, sending)
    const other = await sender.sign(sender.makeSecret(), sending)
    const wrong = Array.from({ length: others }, () => other['webhook-signature'] ?? '')
    const all = [...wrong, right['webhook-signature'] ?? ''].join(' ')
    const headers = { ...right, 'webhook-signature': all }
    t.equal((await post(base, 'generic/many', sending.body, headers)).status, status, `${others}`)
  }
})

await t.test('a field of a form that looks like another one is refused', async (t) => {
  const sender = presetSender('twilio')
  const secret = await add('calls', 'twilio')
  const url = `${base}/webhooks/generic/calls`
  const sending = { ...sendingTo(base, sender, secret), url, body: 'CallStatus=done&To=me' }
  const headers = { ...(await sender.sign(secret, sending)), ...FORM_TYPE }
  for (const [body, status] of [
    ['CallStatus=done&To=me', 202],
    ['To=me&CallStatus=done', 202],
    ['CallStatus=done&CallStatus=done&To=me', 403],
    ['Call=Statusdone&CallStatus=done&To=me', 403],
    ['{"CallStatus": "done"}', 403],
    [`CallStatus=done&To=me${'&'.repeat(70_000)}`, 403],
  ] as const) {
    t.equal((await post(base, 'generic/calls', body, headers)).status, status, body.slice(0, 50))
  }
})

await t.test(
  'a token of Netlify says by itself neither its algorithm nor its issuer',
  async (t) => {
    const secret = await add('deploys', 'netlify')
    const body = '{"state": "ready"}'
    const claims = { iss: 'netlify', sha256: sha256(body) }
    for (const [what, token, status] of [
      ['as it is sent', jwt(secret, claims), 202],
      ['another body', jwt(secret, { ...claims, sha256: sha256('{}') }), 403],
      ['no hash', jwt(secret, { iss: 'netlify' }), 403],
      ['another issuer', jwt(secret, { ...claims, iss: 'castle' }), 403],
      ['another algorithm', jwt(secret, claims, { alg: 'RS256' }), 403],
      ['an extension', jwt(secret, claims, { alg: 'HS256', crit: ['b64'], b64: false }), 403],
      ['no signature', jwt(secret, claims, { alg: 'none' }).replace(/[^.]*$/, ''), 403],
      ['four parts', `${jwt(secret, claims)}.x`, 403],
    ] as const) {
      const headers = { 'X-Webhook-Signature': token }
      t.equal((await post(base, 'generic/deploys', body, headers)).status, status, what)
    }
  },
)

await t.test(
  'of a notification of Adyen there is one, because only the first is signed',
  async (t) => {
    const sender = presetSender('adyen')
    const secret = await add('tolls', 'adyen')
    const { body } = sendingTo(base, sender, secret)
    const event = JSON.parse(body)
    const two = { ...event, notificationItems: [...event.notificationItems, {}] }
    for (const [sent, status] of [
      [body, 202],
      [JSON.stringify(two), 403],
      [body.replace('4200', '42000'), 403],
      [body.replace('4200', '4200.5'), 403],
    ] as const) {
      t.equal((await post(base, 'generic/tolls', sent)).status, status, sent)
    }
  },
)

await t.test('the time and the list of signed headers are among the signed ones', async (t) => {
  const sender = presetSender('contentful')
  const secret = await add('pages', 'contentful')
  const url = `${base}/webhooks/generic/pages`
  const sending = { ...sendingTo(base, sender, secret), url }
  const right = await sender.sign(secret, sending)
  t.equal((await post(base, 'generic/pages', sending.body, right)).status, 202)
  const time = `x-contentful-timestamp:${right['X-Contentful-Timestamp']}`
  const lists = [
    ['x-contentful-signed-headers', 'x-contentful-signed-headers:x-contentful-signed-headers'],
    ['x-contentful-timestamp', time],
    ['', ''],
  ] as const
  for (const [list, signed] of lists) {
    const text = `POST\n/webhooks/generic/pages\n${signed}\n${sending.body}`
    const signature = { 'X-Contentful-Signature': mac(secret, text) }
    const headers = { ...right, ...signature, 'X-Contentful-Signed-Headers': list }
    t.equal((await post(base, 'generic/pages', sending.body, headers)).status, 403, list)
  }
})

await t.test('a challenge of monday.com is answered to whoever has the token', async (t) => {
  const fields = { name: 'boards', trust_mode: 'signed', scheme: 'monday' }
  const made = await postForm(base, '/providers', fields)
  const [, token = ''] = /id="made-token"[^>]*><code>([^<]+)</.exec(made.text) ?? []
  keepSecret('monday', token)
  await enable(base, 'generic:boards', true)
  const before = await eventIds(base)
  const to = `generic/boards?token=${token}`
  const answer = await post(base, to, '{"challenge": "3eZbrw1aB1o"}')
  t.match(answer, { status: 200, text: '{"challenge":"3eZbrw1aB1o"}' })
  t.equal(answer.headers['content-type'], 'application/json')
  t.equal((await post(base, 'generic/boards', '{"challenge": "3eZbrw1aB1o"}')).status, 403)
  t.same(await eventIds(base), before, 'a challenge is no event')
  const event = '{"challenge": "x", "event": {"type": "create_pulse"}}'
  t.equal((await post(base, to, event)).status, 202)
})

await t.test('an operator says where type and id of a known sender stand', async (t) => {
  const sender = presetSender('github')
  const secret = sender.makeSecret()
  const places = { event_type_json: 'kind', id_header: 'X-My-Id' }
  const fields = { name: 'places', trust_mode: 'signed', scheme: 'github', secret, ...places }
  t.equal((await postForm(base, '/providers', fields)).status, 200)
  await enable(base, 'generic:places', true)
  const sending = { ...sendingTo(base, sender, secret), body: '{"kind": "mine"}' }
  const headers = { ...(await sender.sign(secret, sending)), 'X-My-Id': 'my-1' }
  t.equal((await post(base, 'generic/places', sending.body, headers)).status, 202)
  const [id = 0] = await eventIds(base)
  t.match((await shown(base, id)).facts, {
    'Event type': 'mine',
    'Delivery id': 'my-1',
    Verification: 'hmac-sha256 ok',
  })
})

await t.test('the page of senders has each with what is to be done there', async (t) => {
  const { status, text } = await request(`${base}/providers/senders`)
  t.equal(status, 200)
  for (const { title, docs } of PRESETS) {
    t.ok(text.includes(`<h2>${title.replaceAll('&', '&amp;')}</h2>`), title)
    t.ok(text.includes(`href="${docs}"`), docs)
  }
  t.match(text, /HMAC-SHA1 of/)
  t.match(text, /a token, no signature/)
})
