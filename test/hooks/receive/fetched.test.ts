import { createHmac, generateKeyPairSync, hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { join } from 'node:path'
import { t, type Test } from 'tap'
import { createLog } from '../../../kernel/log.ts'
import type { Clock } from '../../../kernel/time.ts'
import { verifyFetched } from '../../../services/hooks/receive/schemes/fetched.ts'
import { keepFetchedKeys } from '../../../services/hooks/receive/schemes/key-cache.ts'
import { schemeNamed } from '../../../services/hooks/receive/schemes/schemes.ts'
import { postgres } from '../../helpers/backends.ts'
import { runCli } from '../../helpers/cli.ts'
import {
  eventIds,
  formCall,
  newest,
  now,
  post,
  postForm,
  refusals,
  startHooks,
  startHooksProcess,
} from '../../helpers/hooks.ts'
import { request } from '../../helpers/http.ts'
import {
  ASKS,
  CONFIRM,
  issuerKey,
  makeCertificate,
  PAYPAL_CERTIFICATE,
  paypalHeaders,
  publishKeys,
  SNS,
  SNS_CERTIFICATE,
  snsMessage,
  startKeyHosts,
  token,
  TOPIC,
} from './key-hosts.ts'
import { listen } from '../../helpers/listen.ts'
import { ROOT } from '../../helpers/program.ts'
import { expectStatus, refuseAll, refuses, type Refusal } from '../../helpers/refusals.ts'
import { keepSecret } from '../../helpers/secrets.ts'
import { cardOf, secretKey } from '../../helpers/senders.ts'
import { until } from '../../helpers/until.ts'

// Senders whose keys are fetched. The hosts, keys and senders are our own: no real sender was asked.
// One delivery of PayPal is real.

const hosts = await startKeyHosts(t)
const key = { GATEHOUSE_SECRET_KEY: secretKey() }
const { base, env } = await startHooks(t, postgres, key, { outbound: hosts })
const certified = await makeCertificate(t)
const other = await makeCertificate(t)

type Fields = Readonly<Record<string, string>>

/** Makes a provider of a scheme, enabled. */
async function add(name: string, scheme: string, more: Fields = {}) {
  const fields = { name, trust_mode: 'signed', scheme, enabled: 'true', ...more }
  await expectStatus(200, postForm(base, '/providers', fields), name)
}

const bearer = (text: string) => ({ Authorization: `Bearer ${text}` })

const PLAIN = { 'Content-Type': 'text/plain; charset=UTF-8' }

/** As a text it would be deeper than the stack. */
const DEEP: unknown = JSON.parse('['.repeat(5_000) + ']'.repeat(5_000))

const sendSns = (name: string, members: object) =>
  post(base, `generic/${name}`, JSON.stringify(members), PLAIN)

const snsCall = (name: string, body: object) => ({
  call: `POST /webhooks/generic/${name}`,
  body,
  headers: PLAIN,
})

/** What is refused to this provider, as the log of rejections says it. */
async function reasonsOf(name: string, count: number) {
  async function all() {
    const listed = await refusals(base, `&provider=generic:${name}`)
    return listed.length >= count && listed.map(({ reason }) => reason).toReversed()
  }
  return until(all, `${count} rejections of ${name}`, undefined, 200)
}

const state = () => eventIds(base)

/** Each of these is refused as not signed, and nothing is stored. */
function refused(t: Test, calls: readonly Refusal[0][]) {
  const said = /signature is missing, malformed/
  const rows = calls.map((call): Refusal => [call, 401, said])
  return refuseAll(t, { service: 'hooks', base, state }, rows)
}

await t.test('Amazon SNS: both versions of its signature, and what is refused', async (t) => {
  hosts.answers.set(SNS_CERTIFICATE, certified.pem)
  await add('sns', 'aws-sns', { topics: TOPIC })
  const first = snsMessage(certified.key, { Subject: 'Order' })
  const taken = await expectStatus(200, sendSns('sns', first))
  t.match(taken.json(), { trust_mode: 'signed', verified: true })
  t.match(await newest(base), {
    verify_detail: 'rsa-sha256 ok',
    event_type: 'Notification',
    external_id: first['MessageId'],
  })
  const old = snsMessage(certified.key, { SignatureVersion: '1' })
  await expectStatus(200, sendSns('sns', old))
  t.match(await newest(base), { verify_detail: 'rsa-sha1 ok' })
  t.equal(hosts.countOf(SNS), 1, 'the certificate was fetched once')
  const bounded = { trusted: false, timeoutMs: 5_000, answerBytes: 128 * 1024 + 1 }
  t.match(hosts.asked[0], bounded)

  const right = snsMessage(certified.key)
  const { Signature: _, ...unsigned } = right
  const cases: readonly (readonly [object, string])[] = [
    [{ ...right, Message: 'another' }, 'altered body, or signed by another key'],
    [snsMessage(other.key), 'altered body, or signed by another key'],
    [{ ...right, SignatureVersion: '1' }, 'altered body, or signed by another key'],
    [{ ...right, SignatureVersion: '3' }, 'signature malformed'],
    [{ ...right, SignatureVersion: 'constructor' }, 'signature malformed'],
    [{ ...right, SignatureVersion: DEEP }, 'signature malformed'],
    [{ ...right, Type: 'constructor' }, 'altered body, or signed by another key'],
    [{ ...right, Signature: 'AAAA' }, 'signature malformed'],
    [unsigned, 'signature missing'],
    [snsMessage(certified.key, { TopicArn: `${TOPIC}-x` }), 'topic not named'],
    ...[
      'http://sns.eu-west-1.amazonaws.com/SimpleNotificationService-1.pem',
      'https://sns.eu-west-1.amazonaws.com.evil.example/SimpleNotificationService-1.pem',
      'https://sns.eu-west-1.amazonaws.com@evil.example/SimpleNotificationService-1.pem',
      'https://sns.eu-west-1.amazonaws.com:8443/SimpleNotificationService-1.pem',
      'https://SNS.eu-west-1.amazonaws.com/SimpleNotificationService-1.pem',
      'https://evil.sns.eu-west-1.amazonaws.com/SimpleNotificationService-1.pem',
      'https://sns.evil.amazonaws.com/SimpleNotificationService-1.pem',
      'https://sns.eu-west-1.evil.amazonaws.com/SimpleNotificationService-1.pem',
      'https://bucket.s3.amazonaws.com/SimpleNotificationService-1.pem',
      'https://169.254.169.254/SimpleNotificationService-1.pem',
      `${SNS}/SimpleNotificationService-1.pem?x=.pem`,
      `${SNS}/SimpleNotificationService-1.pem#x.pem`,
      `${SNS}/../SimpleNotificationService-1.pem`,
      `${SNS}/?Action=x&SimpleNotificationService-1.pem`,
      ` ${SNS_CERTIFICATE}`,
      `${SNS_CERTIFICATE}\n`,
      'https:\\\\sns.eu-west-1.amazonaws.com/SimpleNotificationService-1.pem',
      '',
    ].map((SigningCertURL) => {
      const members = snsMessage(certified.key, { SigningCertURL })
      return [members, 'certificate of another address'] as const
    }),
  ]
  await refused(
    t,
    cases.map(([members]) => snsCall('sns', members)),
  )
  t.same(
    await reasonsOf('sns', cases.length),
    cases.map(([, reason]) => reason),
  )
  t.equal(hosts.countOf('https://'), 1, 'and nothing else was fetched')
})

await t.test('a key that can not be had is 503, and nothing is stored', async (t) => {
  const before = await eventIds(base)
  const cases = {
    missing: 404,
    elsewhere: 302,
    text: 'no certificate',
    slow: { begins: certified.pem.slice(0, 900) },
    large: `${certified.pem}${'x'.repeat(128 * 1024)}`,
    weak: (await makeCertificate(t, 1_024)).pem,
  }
  for (const [name, answer] of Object.entries(cases)) {
    await add(`sns-${name}`, 'aws-sns', { topics: TOPIC })
    const SigningCertURL = `${SNS}/SimpleNotificationService-${name}.pem`
    hosts.answers.set(SigningCertURL, answer)
    const members = snsMessage(certified.key, { SigningCertURL })
    const held = await sendSns(`sns-${name}`, members)
    refuses(t, held, [503, /The sender's key can't be had now/], name)
    t.equal(held.headers['retry-after'], '60')
    hosts.answers.set(SigningCertURL, certified.pem)
    await expectStatus(503, sendSns(`sns-${name}`, members))
    t.equal(hosts.countOf(SigningCertURL), 1, `${name} is not asked for again within a minute`)
  }
  t.same(await eventIds(base), before)
})

await t.test('a subscription is confirmed by hand, or by itself for a named topic', async (t) => {
  await add('news', 'aws-sns')
  hosts.answers.set(CONFIRM, '<ConfirmSubscriptionResponse/>')
  const asks = snsMessage(certified.key, ASKS)
  const early = snsMessage(certified.key)
  await expectStatus(401, sendSns('news', early), 'its topic is not named')
  await expectStatus(200, sendSns('news', asks))
  t.equal(hosts.countOf(`${SNS}/?Action`), 0, 'nothing is confirmed by itself')
  const [id = 0] = await eventIds(base)
  const page = await request(`${base}/log/${id}`)
  t.match(page.text, new RegExp(`topic\\s+<code><bdi>${TOPIC}.*id="confirm-button"`, 's'))

  const [without = 0] = (await eventIds(base)).slice(1)
  const card = () => cardOf(base, 'generic:news')
  await until(async () => (await card())['Rejected'] !== 'none', 'the rejection of before')
  await refuseAll(t, { service: 'hooks', base, state: card }, [
    [`POST /log/${without}/confirm`, 404, /asks for a confirmation/],
    ['POST /log/999999/confirm', 404, /no event under this id/],
  ])
  const confirmed = await postForm(base, `/log/${id}/confirm`, {}, { 'HX-Request': 'true' })
  t.match(confirmed, { status: 200, headers: { 'gatehouse-done': /Confirmed/ } })
  t.equal(hosts.countOf(CONFIRM), 1)
  await expectStatus(200, sendSns('news', early), 'its topic is named now')
  t.match(await card(), { Topics: TOPIC, Secret: 'none by design' })

  await sendSns('news', snsMessage(certified.key, ASKS))
  await until(() => hosts.countOf(CONFIRM) === 2, 'the confirmation by itself')

  hosts.answers.set(CONFIRM, 400)
  const failed = await postForm(base, `/log/${id}/confirm`, {})
  refuses(t, failed, [502, /did not confirm the subscription: it answered 400/])
  for (const SubscribeURL of [
    `https://evil.example/?Action=ConfirmSubscription&a=b`,
    `${SNS}/x`,
  ]) {
    const trick = snsMessage(certified.key, { ...ASKS, SubscribeURL })
    await expectStatus(200, sendSns('news', trick), 'it is signed')
    const [event = 0] = await eventIds(base)
    await expectStatus(404, postForm(base, `/log/${event}/confirm`, {}), SubscribeURL)
  }
  t.equal(hosts.countOf('https://evil'), 0)

  const topics = `${TOPIC}-a, ${TOPIC}-b`
  const set = await runCli(['provider', 'set', 'news', '--topics', topics], { env })
  t.match(set, { code: 0, stderr: /accepts the topics \S+-a, \S+-b/ })
  t.match(await card(), { Topics: topics })
})

const PAYPAL = '{"id":"WH-1","event_type":"PAYMENT.SALE.COMPLETED","n":"wörld"}'

await t.test(
  'PayPal: a certificate, the id of the webhook, and the CRC of the body',
  async (t) => {
    hosts.answers.set(PAYPAL_CERTIFICATE, certified.pem)
    const secret = keepSecret('webhook-id', '4JH86294D6297924G')
    await add('paypal', 'paypal', { secret })
    await add('paypal-test', 'paypal-sandbox', { secret })
    const headers = paypalHeaders(certified.key, secret, PAYPAL)
    await expectStatus(200, post(base, 'generic/paypal', PAYPAL, headers))
    t.match(await newest(base), {
      verify_detail: 'rsa-sha256 ok',
      event_type: 'PAYMENT.SALE.COMPLETED',
      external_id: 'WH-1',
    })
    const to = { call: 'POST /webhooks/generic/paypal', body: PAYPAL, headers }
    const { 'paypal-cert-url': __, ...bare } = headers
    const cases = [
      { ...to, body: PAYPAL.replace('1', '2') },
      { ...to, call: `${to.call}-test` },
      ...[
        { ...headers, 'paypal-transmission-time': '2026-11-28T15:45:14Z' },
        paypalHeaders(certified.key, `${secret}x`, PAYPAL),
        paypalHeaders(other.key, secret, PAYPAL),
        bare,
      ].map((changed) => ({ ...to, headers: changed })),
      ...[
        'https://api.sandbox.paypal.com/v1/notifications/certs/CERT-1',
        'https://api.paypal.com/v1/oauth2/CERT-1',
        'https://api.paypal.com/v1/notifications/certs/../../CERT-1',
        'https://api.paypal.com.evil.example/v1/notifications/certs/CERT-1',
      ].map((url) => ({ ...to, headers: { ...headers, 'paypal-cert-url': url } })),
    ]
    const fetched = hosts.asked.length
    await refused(t, cases)
    t.equal(hosts.asked.length, fetched, 'and nothing was fetched')
  },
)

await t.test('a delivery that PayPal has published is verified at its time', async (t) => {
  const scheme = schemeNamed('paypal-sandbox')
  if (scheme === undefined) throw new Error('there is no scheme')
  const file = (name: string) => readFileSync(join(ROOT, 'test', 'fixtures', name))
  const address = PAYPAL_CERTIFICATE.replace('api.', 'api.sandbox.')
  hosts.answers.set(address, file('paypal-sandbox.pem').toString())
  const signature =
    'thy4/U002quzxFavHPwbfJGcc46E8rc5jzgyeafWm5mICTBdY/8rl7WJpn8JA0GKA+oDTPsSruqusw+XXg5RLAP7ip53' +
    'Euh9Xu3UbUhQFX7UgwzE2FeYoY6lyRMiiiQLzy9BvHfIzNIVhPad4KnC339dr6y2l+mN8ALgI4GCdIh3/SoJO5wE64Bh' +
    '/ueWtt8EVuvsvXfda2Le5a2TrOI9vLEzsm9GS79hAR/5oLexNz8UiZr045Mr5ObroH4w4oNfmkTaDk9Rj0G19uvISs5Q' +
    'zgmBpauKr7Nw++JI0pr/v5mFctQkoWJSGfBGzPRXawrvIIVHQ9Wer48GR2g9ZiApWg=='
  const headers = {
    'paypal-transmission-id': 'dfb3be50-fd74-11e4-8bf3-77339302725b',
    'paypal-transmission-time': '2015-05-18T15:45:13Z',
    'paypal-transmission-sig': signature,
    'paypal-cert-url': address,
  }
  const fetchedKeys = keepFetchedKeys({ ...hosts, ...fakeClock() })
  const keys = { accepted: [Buffer.from('4JH86294D6297924G')], retired: [] }
  const verify = (receivedAt: string, body: Buffer) => {
    const source = { provider: 'generic:p', fetchedKeys, keys, freshness: 300 }
    const head = { headers, receivedAt: new Date(receivedAt) }
    return verifyFetched(scheme, head, source).finish(body)
  }
  const body = file('paypal-event.txt')
  t.match(await verify('2015-05-18T15:45:14Z', body), { secret: 'current' })
  t.match(await verify('2015-05-18T15:45:14Z', body.subarray(1)), { reason: /altered body/ })
  const expired = { status: 401, reason: "the sender's key has expired" }
  t.same(await verify('2017-03-23T00:00:00Z', body), expired)
  const early = { status: 401, reason: "the sender's key is not valid yet" }
  t.same(await verify('2015-03-01T00:00:00Z', body), early)
})

/** A clock that is set by hand, and a log that says nothing. */
function fakeClock() {
  let ms = 0
  const clock: Clock = { now: () => new Date(ms), elapsed: () => ms, every: () => () => undefined }
  const log = createLog(() => undefined, clock.now)
  return { clock, log, pass: (more: number) => void (ms += more) }
}

const SERVICE_ACCOUNT = 'push@project.iam.gserviceaccount.com'
const GOOGLE = 'https://accounts.google.com'
const AUDIENCE = 'https://hooks.example/push'

await t.test(
  'Pub/Sub: an OpenID token of Google, which covers no byte of the event',
  async (t) => {
    const [google, stranger] = [issuerKey('g1'), issuerKey('g1')]
    publishKeys(hosts, GOOGLE, [google.jwk, issuerKey('g2', 'ec').jwk])
    await add('push', 'google-pubsub', { audience: AUDIENCE, subject: SERVICE_ACCOUNT })
    const at = now()
    const claims = {
      iss: GOOGLE,
      aud: AUDIENCE,
      email: SERVICE_ACCOUNT,
      email_verified: true,
      sub: '113774264463038321964',
      iat: at,
      exp: at + 3_600,
    }
    const message = { attributes: { eventType: 'OBJECT_FINALIZE' }, messageId: '136969346945' }
    const body = JSON.stringify({ message, subscription: 'projects/p/subscriptions/s' })
    const taken = await post(base, 'generic/push', body, bearer(token(google, claims)))
    t.match(taken.json(), { trust_mode: 'token', verified: false }, taken.text)
    t.match(await newest(base), {
      verify_detail: 'token ok',
      event_type: 'OBJECT_FINALIZE',
      external_id: '136969346945',
    })
    const hmac = (text: string) => {
      const spki = google.key.export({ type: 'pkcs8', format: 'pem' })
      return createHmac('sha256', spki).update(text).digest()
    }
    const wrong = {
      'another audience': token(google, { ...claims, aud: 'https://other.example' }),
      'no audience': token(google, { ...claims, aud: undefined }),
      'another issuer': token(google, { ...claims, iss: 'https://evil.example' }),
      'another account': token(google, { ...claims, email: 'x@project.iam.gserviceaccount.com' }),
      'an unverified address': token(google, { ...claims, email_verified: 'true' }),
      expired: token(google, { ...claims, exp: at - 61 }),
      'without an end': token(google, { ...claims, exp: undefined }),
      'not yet': token(google, { ...claims, nbf: at + 120 }),
      'another key': token(stranger, claims),
      'an unknown key': token(issuerKey('g9'), claims),
      'a key of another kind': token({ ...google, kid: 'g2' }, claims, { alg: 'ES256' }),
      'no key': token(google, claims, { kid: undefined }),
      none: token(google, claims, { alg: 'none' }).replace(/\.[^.]*$/, '.'),
      'the public key as a secret': token(google, claims, { alg: 'HS256' }, hmac),
      'RS256 by name alone': token(google, claims, { alg: 'RS512' }),
      critical: token(google, claims, { crit: ['x'] }),
      'no token': 'x',
    }
    const to = { call: 'POST /webhooks/generic/push', body }
    await refused(t, [
      ...Object.values(wrong).map((text) => ({ ...to, headers: bearer(text) })),
      to,
      { ...to, call: `${to.call}?token=${token(google, claims)}` },
    ])
    t.equal(hosts.countOf(`${GOOGLE}/`), 2, 'the document and the keys were fetched once')
  },
)

await t.test('an issuer whose documents can not be used gives no key', async (t) => {
  const kid = 'w'
  const [own, weak] = [issuerKey(kid), generateKeyPairSync('rsa', { modulusLength: 1_024 })]
  const jwks_uri = 'https://keys.example/keys'
  hosts.answers.set(jwks_uri, JSON.stringify({ keys: [own.jwk] }))
  /** What the document says instead, and which keys there are. */
  const cases: Readonly<Record<string, readonly [changes?: object, key?: object | null]>> = {
    right: [],
    other: [{ jwks_uri }],
    another: [{ issuer: 'https://evil.example' }],
    prefix: [{ issuer: 'https://prefix.example/' }],
    plain: [{ jwks_uri: 'http://plain.example/keys' }],
    user: [{ jwks_uri: 'https://a@user.example/keys' }],
    none: [{}, null],
    shared: [{}, { kty: 'oct', k: Buffer.alloc(32, 1).toString('base64url'), kid }],
    weak: [{}, { ...weak.publicKey.export({ format: 'jwk' }), kid }],
    encrypts: [{}, { ...own.jwk, use: 'enc' }],
    halved: [{}, { kty: 'EC', crv: 'P-256', x: 'AA', y: 'AA', kid }],
  }
  for (const [name, [changes, key = own.jwk]] of Object.entries(cases)) {
    const iss = `https://${name}.example`
    await add(`by-${name}`, 'openid', { issuer: iss, audience: 'hooks' })
    publishKeys(hosts, iss, key === null ? [] : [key], changes)
    const claims = { iss, aud: 'hooks', exp: now() + 600 }
    const { status } = await post(base, `generic/by-${name}`, '{}', bearer(token(own, claims)))
    t.equal(status, /^(right|other)$/.test(name) ? 202 : 503, name)
  }
  const asked = hosts.asked.filter(({ url }) => url.host.startsWith('right.'))
  t.match(asked, [{ trusted: true }, { trusted: true }], 'it may be on a private network')
  const elsewhere = hosts.asked.find(({ url }) => url.href === jwks_uri)
  t.match(elsewhere, { trusted: false }, 'another host has to be public')
})

const PLAID_KEYS = 'https://production.plaid.com/webhook_verification_key/get'

await t.test('Plaid: a token with the hash of the body, by a key of its API', async (t) => {
  const plaid = issuerKey('bfbd5111-8e33-4643-8ced-b2e642a72f3c', 'ec')
  const secret = keepSecret('plaid', '5f0c6f1e9d3b2a0012345678:abcdef0123456789abcdef012345')
  const [client_id, part] = secret.split(':')
  hosts.answers.set(PLAID_KEYS, (sent) => {
    const asked = JSON.parse(sent)
    const isOurs = asked.client_id === client_id && asked.secret === part
    if (!isOurs || asked.key_id !== plaid.kid) return 400
    return JSON.stringify({ key: { ...plaid.jwk, alg: 'ES256', expired_at: null } })
  })
  await add('plaid', 'plaid', { secret })
  const body = '{\n  "webhook_type": "ITEM", "webhook_code": "ERROR"\n}'
  const claims = { iat: now(), request_body_sha256: hash('sha256', body) }
  const by = (text: string) => ({ 'Plaid-Verification': text })
  const taken = await post(base, 'generic/plaid', body, by(token(plaid, claims)))
  t.match(taken.json(), { trust_mode: 'signed', verified: true }, taken.text)
  t.match(await newest(base), {
    verify_detail: 'ecdsa-p256 ok',
    event_type: 'ERROR',
    headers: { 'plaid-verification': '«redacted»' },
  })
  const to = { call: 'POST /webhooks/generic/plaid', body }
  await refused(t, [
    { ...to, body: body.replace('ITEM', 'AUTH'), headers: by(token(plaid, claims)) },
    { ...to, headers: by(token(plaid, { ...claims, iat: now() - 301 })) },
    { ...to, headers: by(token(plaid, { ...claims, iat: undefined })) },
    { ...to, headers: by(token(plaid, { ...claims, request_body_sha256: undefined })) },
    { ...to, headers: by(token({ ...issuerKey('x', 'ec'), kid: plaid.kid }, claims)) },
    to,
  ])
  const unknown = by(token(issuerKey('other', 'ec'), claims))
  await expectStatus(503, post(base, 'generic/plaid', body, unknown), 'its key is not known')
  t.equal(hosts.countOf(PLAID_KEYS), 1, 'within a minute it is not asked for')
})

await t.test('keys are kept for an hour, and made-up ids do not keep them out', async (t) => {
  const { pass, ...parts } = fakeClock()
  const keys = keepFetchedKeys({ ...hosts, ...parts })
  let [rounds, isDown] = [0, false]
  const [found] = [{ key: issuerKey('k').key }]
  const set = (name: string, more: readonly string[] = []) => ({
    name,
    source: 'generic:one',
    async fetch() {
      rounds++
      if (isDown) return { problem: 'down' }
      return new Map([name, ...more].map((id) => [id, found] as const))
    },
  })
  const held = { message: /can't be had now/ }
  await Promise.all([keys.find(set('a'), 'a'), keys.find(set('a'), 'a')])
  t.equal(rounds, 1, 'two deliveries at once share one request')
  t.equal(await keys.find(set('a'), 'x'), undefined, 'a set of this minute has no such key')
  await t.rejects(keys.find(set('b'), 'b'), held, 'one new name a minute')
  pass(60_000)
  t.equal(await keys.find(set('a', ['x']), 'x'), found, 'an unknown id renews the set')
  await t.rejects(keys.find(set('b'), 'b'), held)
  t.equal(rounds, 2)
  pass(60 * 60_000)
  await t.rejects(keys.find({ ...set('c'), fetch: async () => ({ problem: 'x' }) }, 'c'), held)
  t.equal(await keys.find(set('a'), 'a'), found, 'it is renewed all the same')
  t.equal(rounds, 3)
  pass(60 * 60_000)
  isDown = true
  await t.rejects(keys.find(set('a'), 'a'), held, 'a key of more than an hour is not used')
  await t.rejects(keys.find(set('a'), 'a'), held)
  t.equal(rounds, 4, 'and is asked for once a minute')
})

/** An issuer of its own on this machine, with its keys; gives its URL. */
async function startIssuer(tls: { cert: Buffer | string; key: Buffer | string }, jwk: object) {
  const server = createServer(tls, ({ headers, url }, response) => {
    response.end(hosts.answers.get(`https://${headers.host}${url}`))
  })
  const issuer = `https://localhost:${await listen(t, server)}/realm`
  publishKeys(hosts, issuer, [jwk])
  return issuer
}

await t.test('an issuer of the operator, over TLS, checked by its authority', async (t) => {
  const file = join(ROOT, 'test', 'fixtures', 'localhost.pem')
  const pem = readFileSync(file)
  const own = issuerKey('o1', 'ec')
  const issuers = {
    own: await startIssuer({ cert: pem, key: pem }, own.jwk),
    stranger: await startIssuer(
      { cert: certified.pem, key: certified.key.export({ type: 'pkcs8', format: 'pem' }) },
      own.jwk,
    ),
  }
  const hooks = await startHooksProcess(t, postgres, { NODE_EXTRA_CA_CERTS: file })
  const statuses: number[] = []
  for (const [name, issuer] of Object.entries(issuers)) {
    const flags = ['--issuer', issuer, '--audience', 'hooks', '--subject', 'sender', '--enable']
    const args = ['provider', 'add', name, '--scheme', 'openid', ...flags]
    const added = await runCli(args, { env: hooks.env })
    t.match(added, { code: 0, stdout: '' }, 'it has no secret')
    const claims = { iss: issuer, aud: ['x', 'hooks'], sub: 'sender', exp: now() + 600 }
    const known = await until(async () => {
      const answer = await post(hooks.base, `generic/${name}`, '{}', bearer(token(own, claims)))
      return answer.status !== 404 && answer
    }, `the provider ${name} to be known`)
    statuses.push(known.status)
  }
  t.same(statuses, [202, 503])
})

await t.test('what an operator has to say of a sender', async (t) => {
  const page = async (scheme: string) => {
    return (await request(`${base}/providers/new?scheme=${scheme}`)).text
  }
  t.match(await page('google-pubsub'), /name="audience"[^>]*required.*name="subject"/s)
  const sns = await page('aws-sns')
  t.match(sns, /name="topics"/)
  t.notMatch(sns, /name="secret"|name="audience"/)
  const form = (fields: Fields) =>
    formCall('/providers', { name: 'bad', trust_mode: 'signed', ...fields })
  const named = { audience: 'a', subject: 'b' }
  await refuseAll(t, { service: 'hooks', base, state: async () => await page('token') }, [
    [form({ scheme: 'google-pubsub', audience: 'a' }), 422, /subject is missing/],
    [form({ scheme: 'openid', ...named }), 422, /issuer is missing/],
    ...['http://a.example', 'https://u@a.example', 'https://a.example?x', 'a.example'].map(
      (issuer): Refusal => {
        return [form({ scheme: 'openid', issuer, ...named }), 422, /issuer/]
      },
    ),
    [form({ scheme: 'aws-sns', topics: 'a b <c>' }), 422, /topics must be/],
    [form({ scheme: 'aws-sns', secret: 'long-enough' }), 422, /has no secret/],
    [form({ scheme: 'paypal' }), 422, /sender makes the secret/],
    [form({ scheme: 'plaid', secret: 'no-colon-here' }), 422, /CLIENT_ID:SECRET/],
  ])
  const flags = await runCli(['provider', 'add', 'x', '--scheme', 'github', '--topics', TOPIC])
  t.match(flags, { code: 2, stderr: /topics is for the scheme aws-sns alone/ })
})
