import { createHmac } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { t, type Test } from 'tap'
import { listSenders } from '../../../services/hooks/receive/schemes/describe.ts'
import { keyOf } from '../../../services/hooks/receive/schemes/keys.ts'
import { PRESETS } from '../../../services/hooks/receive/schemes/presets/presets.ts'
import { schemeNamed } from '../../../services/hooks/receive/schemes/schemes.ts'
import { verifySignature } from '../../../services/hooks/receive/schemes/signatures.ts'
import { isSignable, signDelivery } from '../../../services/hooks/receive/schemes/signing.ts'
import { LIBRARY_VECTORS } from '../../fixtures/library-vectors.ts'
import { PRESET_EVENTS } from '../../fixtures/preset-events.ts'
import { PRESET_VECTORS } from '../../fixtures/preset-vectors.ts'
import { backends } from '../../helpers/backends.ts'
import { runCli } from '../../helpers/cli.ts'
import {
  FORM_TYPE,
  JSON_TYPE,
  enable,
  eventIds,
  now,
  post,
  postForm,
  refusals,
  shown,
  startHooks,
  type Ack,
} from '../../helpers/hooks.ts'
import { request, type Response } from '../../helpers/http.ts'
import { PRESET_SENDERS, presetSender, sendingTo } from '../../helpers/preset-senders.ts'
import { jwt, mac, plain, sha256 } from '../../helpers/preset-signing.ts'
import type { PresetSender, Sending } from '../../helpers/preset-signing.ts'
import { attemptsOf, replay } from '../../helpers/replays.ts'
import { keepSecret } from '../../helpers/secrets.ts'
import { change, secretKey } from '../../helpers/senders.ts'
import { until } from '../../helpers/until.ts'

const [, postgres] = backends
const { base } = await startHooks(t, postgres, {
  GATEHOUSE_SECRET_KEY: secretKey(),
  HOOKS_REPLAY_TARGETS: '127.0.0.1',
})

/** Senders that an operator describes, and the fields of the form that do. */
const DESCRIBED: readonly (readonly [Fields, PresetSender])[] = [
  [
    { header: 'X-Check', encoding: 'base64url', algorithm: 'sha512' },
    plain('hmac', 'X-Check', sha512, { detail: 'hmac-sha512 ok' }),
  ],
  [
    {
      header: 'X-Own-Signature',
      prefix: 'v0=',
      encoding: 'base64',
      signed_text: '{id}.{timestamp}.{body}',
      timestamp_header: 'X-Own-Time',
      event_type_json: 'event.name',
      id_header: 'X-Own-Id',
    },
    {
      ...plain('hmac', 'X-Own-Signature', sha512, { type: 'thing.done' }),
      proof: ['X-Own-Signature', 'X-Own-Time', 'X-Own-Id'],
      sign: (secret, { body, id, at }) => ({
        'X-Own-Signature': `v0=${mac(secret, `${id}.${at}.${body}`, 'base64')}`,
        'X-Own-Time': String(at),
        'X-Own-Id': id,
      }),
      body: () => '{"event": {"name": "thing.done"}}',
      hasId: true,
      isTimed: true,
    },
  ],
]

function sha512(secret: string, body: string): string {
  return createHmac('sha512', secret).update(body).digest('base64url')
}

type Fields = Readonly<Record<string, string>>

/** Makes a provider of a scheme, enabled; gives its secret. */
async function add(name: string, scheme: string, more: Fields = {}): Promise<string> {
  const secret = presetSender(scheme).makeSecret()
  const fields = { name, trust_mode: 'signed', scheme, secret, ...more }
  const made = await postForm(base, '/providers', fields)
  if (made.status !== 200) throw new Error(`${name} was not made: ${made.text.slice(0, 200)}`)
  if (scheme !== 'hmac' && !/id="made-url".*<dt>At the sender<\/dt>/s.test(made.text)) {
    throw new Error(`it is not said what is to be done at ${scheme}`)
  }
  await enable(base, `generic:${name}`, true)
  return secret
}

for (const scheme of ['github', 'stripe', 'meta', 'dropbox', 'trello', 'asana', 'woocommerce']) {
  await add(`to-${scheme}`, scheme)
}

/** Those whose keys are fetched are in `fetched.test.ts`. */
const SIGNED_HERE = PRESETS.filter(({ scheme }) => !('fetched' in scheme))

await t.test('each sender is there once, and what is said of its test is true', async (t) => {
  const known = SIGNED_HERE.map(({ name }) => name).toSorted()
  t.same(known, PRESET_SENDERS.map((one) => one.scheme).toSorted())
  t.ok(PRESETS.length >= 60, `${PRESETS.length} senders`)
  const published = new Set([...PRESET_VECTORS.map((one) => one.scheme), 'github', 'slack'])
  const byLibrary = PRESET_SENDERS.filter((one) => one.byLibrary)
  const libraries = new Set([...byLibrary, ...LIBRARY_VECTORS].map((one) => one.scheme))
  for (const { name, tested } of SIGNED_HERE) {
    const best = published.has(name) ? 'vector' : libraries.has(name) ? 'library' : 'document'
    t.equal(tested, best, name)
  }
})

await t.test(
  'vectors of senders and their libraries are verified at their time, and nothing beside them',
  async (t) => {
    for (const vector of [...PRESET_VECTORS, ...LIBRARY_VECTORS]) {
      const { scheme: name, from, secret, body, headers, at, url = '' } = vector
      const scheme = schemeNamed(name)
      const key = scheme?.secret === undefined ? secret : keyOf(name, secret)
      if (scheme === undefined || key === undefined) throw new Error(`${name} has no key`)
      const verify = (text: string, receivedAt: number) => {
        const head = { headers, receivedAt: new Date(receivedAt * 1_000), method: 'POST', url }
        const verifier = verifySignature(scheme, head, { accepted: [key], retired: [] }, 300)
        const bytes = Buffer.from(text)
        for (const byte of bytes) verifier.update(Buffer.of(byte))
        return verifier.finish(bytes)
      }
      t.same(verify(body, at), { secret: 'current' }, from)
      t.match(verify(body.replace(/.\s*$/, 'x'), at), { status: 401 }, `${from}, other body`)
      if (at > 0) t.match(verify(body, at + 400), { reason: /stale/ }, `${from}, later`)
    }
  },
)

await t.test('what is signed here again is verified by its scheme', async (t) => {
  const at = new Date('2026-11-26T00:00:00.123Z')
  const body = Buffer.from('{"a":1}')
  const signs: string[] = []
  for (const { name, scheme } of SIGNED_HERE) {
    if (!('signature' in scheme)) continue
    const secret = PRESET_SENDERS.find((one) => one.scheme === name)?.makeSecret() ?? ''
    const key = keyOf(name, secret)
    if (key === undefined) throw new Error(`${name} has no key`)
    const made = signDelivery(scheme, { id: 'msg_1', body }, key, at)
    if (!isSignable(scheme)) {
      t.same(made, {}, `${name}: only its sender can`)
      continue
    }
    signs.push(name)
    const keys = { accepted: [key], retired: [] }
    const verifier = verifySignature(scheme, { headers: made, receivedAt: at }, keys, 300)
    verifier.update(body)
    t.same(verifier.finish(body), { secret: 'current' }, name)
  }
  t.ok(signs.length > 40, `${signs.length} schemes sign`)
})

await t.test('gatehouse schemes lists them', async (t) => {
  const table = await runCli(['schemes'])
  t.match(table, { code: 0, stderr: '' })
  for (const { name, docs } of PRESETS) t.ok(table.stdout.includes(` ${docs}`), name)
  t.match(table.stdout, /^vercel +Vercel \(SHA-1\) +HMAC-SHA1 of \{body\} +by document/m)
  const listed = await runCli(['schemes', '--json'])
  t.match(
    JSON.parse(listed.stdout).find((one: { name: string }) => one.name === 'telegram'),
    { title: 'Telegram (secret token)', trust_mode: 'token', verifies: 'a token, no signature' },
  )
})

await t.test('the table of the documentation says where their types and ids are', async (t) => {
  const text = (await readFile('docs/senders.md', 'utf8')).replaceAll('`', '')
  for (const { name, title, type, id } of listSenders()) {
    const row = text.split('\n').find((line) => line.startsWith(`| [${title}](`)) ?? ''
    const cells = row.split(' | ')
    t.same([cells[1], cells[3], cells[4]], [name, type, id], title)
  }
})

function sendingOf(name: string, sender: PresetSender, secret: string, at = now()): Sending {
  return sendingTo(`${base}/webhooks/generic/${name}`, sender, secret, at)
}

type Headers = Readonly<Record<string, string | readonly string[]>>

function send(
  name: string,
  { contentType = 'application/json' }: PresetSender,
  body: string,
  headers: Headers,
): Promise<Response> {
  return post(base, `generic/${name}`, body, { 'Content-Type': contentType, ...headers })
}

/** Signs a delivery and sends it. */
async function deliver(name: string, sender: PresetSender, secret: string): Promise<Response> {
  const sending = sendingOf(name, sender, secret)
  return send(name, sender, sending.body, await sender.sign(secret, sending))
}

const LISTED = PRESET_SENDERS.map((sender) => {
  const fields = sender.scheme === 'hmac' ? { header: 'X-Signature' } : {}
  return [sender.scheme, fields, sender] as const
})
const OWN = DESCRIBED.map(([fields, sender], at) => [`own-${at}`, fields, sender] as const)

/** Senders without an id, that either sign nothing or send the same bytes for another event. */
const NEW_EACH_TIME = new Set([
  'alertmanager',
  'better-stack',
  'docker-hub',
  'dropbox',
  'grafana',
  'grafana-signed',
])

for (const [name, fields, sender] of [...LISTED, ...OWN]) {
  await t.test(`${name}: what its sender sends is taken, and nothing else`, async (t: Test) => {
    const secret = await add(name, sender.scheme, fields)
    const sending = sendingOf(name, sender, secret)
    const headers = await sender.sign(secret, sending)
    const taken = await send(name, sender, sending.body, headers)
    t.equal(taken.status, sender.stored, taken.text)
    if (sender.stored === 204) t.equal(taken.text, '')
    const [id = 0] = await eventIds(base)
    const { facts, headers: stored } = await shown(base, id)
    const type = sender.type ?? 'none'
    t.match(facts, { Verification: sender.detail, 'Event type': type, Provider: name })
    const own = sender.eventId?.(sending) ?? sending.id
    const byBytes = NEW_EACH_TIME.has(sender.scheme) ? 'none' : /^sha256:/
    t.match(facts['Delivery id'], sender.hasId ? own : byBytes)
    await send(name, sender, sending.body, headers)
    const [again] = await eventIds(base)
    t.equal(again !== id, NEW_EACH_TIME.has(sender.scheme), 'a repeat')
    for (const one of sender.proof.filter((part) => /signature|token|auth|check/i.test(part))) {
      if (!/time/i.test(one)) t.equal(stored[one.toLowerCase()], '«redacted»', one)
    }
    await refuses(t, name, sender, secret)
  })
}

await t.test('other forms of deliveries say what they are, too', async (t) => {
  const secrets = new Map<string, string>()
  for (const { scheme, body, type, id } of PRESET_EVENTS) {
    const sender = presetSender(scheme)
    const secret = secrets.get(scheme) ?? (await add(`forms-${scheme}`, scheme))
    secrets.set(scheme, secret)
    const isForm = body instanceof URLSearchParams
    const sent = isForm ? String(body) : JSON.stringify(body)
    const headers = await sender.sign(secret, { ...sendingTo(base, sender, secret), body: sent })
    const all = { ...JSON_TYPE, ...headers, ...(isForm && FORM_TYPE) }
    const taken = await post(base, `generic/forms-${scheme}`, sent, all)
    t.equal(taken.status, sender.stored, taken.text)
    const [event = 0] = await eventIds(base)
    const { facts } = await shown(base, event)
    t.match(facts, { 'Event type': type ?? 'none', 'Delivery id': id ?? /^sha256:/ }, sent)
  }
})

await t.test('a later try is a repeat, and another event of the same bytes is none', async (t) => {
  for (const [scheme, body, later, isRepeat] of [
    [
      'hubspot',
      '[{"subscriptionId":1,"eventId":2,"occurredAt":3,"attemptNumber":0}]',
      '[{"subscriptionId":1,"eventId":2,"occurredAt":3,"attemptNumber":1}]',
      true,
    ],
    [
      'hubspot',
      '[{"subscriptionId":1,"eventId":7,"occurredAt":3,"attemptNumber":0}]',
      '[{"subscriptionId":1,"eventId":7,"occurredAt":4,"attemptNumber":0}]',
      false,
    ],
    ['dropbox', '{"list_folder":{}}', '{"list_folder":{}}', false],
    ['npm', '{"event":"package:star"}', '{"event":"package:star"}', true],
  ] as const) {
    const sender = presetSender(scheme)
    const name = `tries-${scheme}-${isRepeat}`
    const secret = await add(name, scheme)
    const ids: (number | undefined)[] = []
    for (const sent of [body, later]) {
      const url = `${base}/webhooks/generic/${name}`
      const headers = await sender.sign(secret, { ...sendingTo(url, sender, secret), body: sent })
      const { status } = await post(base, `generic/${name}`, sent, { ...JSON_TYPE, ...headers })
      t.equal(status, sender.stored)
      ids.push((await eventIds(base))[0])
    }
    t.equal(ids[0] === ids[1], isRepeat, `${name}: ${later}`)
  }
})

await t.test('secrets are replaced, and what is sent on is signed again', async (t: Test) => {
  const discord = ['discord', {}, presetSender('discord')] as const
  for (const [name, fields, sender] of [...OWN, discord]) {
    const { scheme, stored, refused } = sender
    const old = await add(`${name}-turns`, scheme, fields)
    const key = sender.makeSecret()
    const rotate = (more = {}) =>
      change(base, `generic:${name}-turns`, 'rotate', { secret: key, ...more })
    const status = async (secret: string) =>
      (await deliver(`${name}-turns`, sender, secret)).status
    await rotate()
    t.same([await status(old), await status(key)], [stored, stored], 'the previous one, too')
    await rotate({ overlap: '0' })
    t.same([await status(old), await status(key)], [refused, stored])

    // Another provider verifies what is signed again, and a sample.
    const [id = 0] = await eventIds(base)
    const again = { name: `${name}-again`, trust_mode: 'signed', scheme, secret: key, ...fields }
    await postForm(base, '/providers', again)
    await enable(base, `generic:${again.name}`, true)
    await replay(base, id, `${base}/webhooks/generic/${again.name}`)
    const [attempt] = await attemptsOf(base, id)
    const flags = Object.entries(fields).flatMap(([field, value]) => [
      `--${field.replaceAll('_', '-')}`,
      value,
    ])
    const args = ['send-sample', again.name, '--scheme', scheme, '--token-stdin', ...flags]
    const to = { HOOKS_ADDR: new URL(base).host }
    const sample = await runCli(args, { env: to, input: key })
    if (scheme === 'discord') {
      t.match(attempt, { outcome: 'failed', answer: /^401 / }, 'only its sender can sign')
      t.match(sample, { code: 2, stderr: /--scheme discord: only its sender can sign/ })
    } else {
      t.match(attempt, { outcome: 'delivered', answer: /^202 / })
      t.match(sample, { code: 0, stdout: /^202 \{.*"trust_mode":"signed","verified":true/ })
    }
  }
})

/** One thing is changed, and it is refused. */
async function refuses(
  t: Test,
  name: string,
  sender: PresetSender,
  secret: string,
): Promise<void> {
  const before = await eventIds(base)
  const sending = sendingOf(name, sender, secret)
  const { body } = sending
  const right = await sender.sign(secret, sending)
  const other = sender.makeSecret()
  const otherBody = sender.body(sending, other)
  const flipped = Object.fromEntries(
    Object.entries(right).map(([header, value]) => [
      header,
      sender.proof.includes(header) ? flip(value) : value,
    ]),
  )
  const coversBody = sender.detail !== 'token ok'
  const cases: [string, string, Headers][] = [
    ['another key', otherBody, await sender.sign(other, { ...sending, body: otherBody })],
  ]
  if (coversBody) {
    const last = body.replace(/[\]}a-z](\s*)$/i, (end) => (end.startsWith('b') ? 'c' : `b`))
    cases.push(['another body', last, right], ['a longer body', `${body}x`, right])
  }
  if (sender.proof.length === 0) cases.push(['another signature', flip(body), right])
  else cases.push(['another signature', body, flipped])
  for (const header of sender.proof) {
    const { [header]: value = '', ...without } = right
    cases.push([`without ${header}`, body, without])
    // Of this header node:http keeps the first one alone, as the standard has it.
    if (header !== 'authorization')
      cases.push([`twice ${header}`, body, { ...without, [header]: [value, value] }])
  }
  for (const seconds of sender.isTimed ? [-4_000, 4_000] : []) {
    const late = sendingOf(name, sender, secret, now() + seconds)
    cases.push([`${seconds} s`, late.body, await sender.sign(secret, late)])
  }
  for (const [what, sent, headers] of cases) {
    const answer = await send(name, sender, sent, headers)
    t.equal(answer.status, sender.refused, `${what}: ${answer.text}`)
  }
  t.same(await eventIds(base), before, 'nothing is stored')
}

/** The first digit of the longest run of digits, changed. */
function flip(value: string): string {
  const runs = [...value.matchAll(/[A-Za-z0-9+/_-]{12,}/g)]
  const [run] = runs.toSorted((a, b) => b[0].length - a[0].length)
  const at = run?.index ?? 0
  return value.slice(0, at) + (value[at] === '0' ? '1' : '0') + value.slice(at + 1)
}

await t.test('a delivery with the headers of another sender says whose they are', async () => {
  for (const [to, from, title] of [
    ['github', 'sentry', 'Sentry: scheme sentry'],
    ['stripe', 'lemon-squeezy', 'Lemon Squeezy: scheme lemon-squeezy'],
  ] as const) {
    const sender = presetSender(from)
    const secret = sender.makeSecret()
    const sending = sendingTo(base, sender, secret)
    await post(base, `generic/to-${to}`, sending.body, await sender.sign(secret, sending))
    const expected = new RegExp(`missing; the headers are those of ${title}`)
    await until(async () => {
      const listed = await refusals(base, `&provider=generic:to-${to}`)
      return listed.some(({ reason }) => expected.test(reason))
    }, `${to} to be told of ${from}`)
  }
})

const ZOOM = '{"event":"endpoint.url_validation","payload":{"plainToken":"qgg8"}}'
const SLACK = '{"type":"url_verification","challenge":"3eZ"}'
const GRAPH = { trust_mode: 'signed', scheme: 'microsoft-graph' }
const HOOKSHOT = { 'User-Agent': 'WooCommerce/10.1.0 Hookshot (WordPress/6.8)' }
const TWITCH = { 'Twitch-Eventsub-Message-Type': 'webhook_callback_verification' }

await t.test('checks of an address are answered as the sender asks, and not stored', async (t) => {
  const before = await eventIds(base)
  const text = 'text/plain'
  const cases: readonly (readonly [string, 'GET' | 'HEAD' | 'POST', Headers, number, string])[] = [
    [
      'to-meta?hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token=x',
      'GET',
      {},
      200,
      '1158201444',
    ],
    ['to-meta?hub.challenge=1158201444', 'GET', {}, 405, ''],
    ['to-dropbox?challenge=abc%20d', 'GET', {}, 200, 'abc d'],
    ['to-dropbox', 'GET', {}, 405, ''],
    ['to-trello', 'HEAD', {}, 200, ''],
    ['to-github?challenge=abc', 'GET', {}, 405, ''],
    ['to-asana', 'POST', { 'X-Hook-Secret': 'b537207f20cbfa02357cf448134da559' }, 200, ''],
    ['to-woocommerce', 'POST', HOOKSHOT, 200, ''],
    ['to-woocommerce', 'POST', { ...HOOKSHOT, 'X-WC-Webhook-Signature': 'eA==' }, 403, ''],
    ['to-woocommerce', 'POST', { 'User-Agent': 'curl/8' }, 403, ''],
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
  const asana = await post(base, 'generic/to-asana', '', { 'X-Hook-Secret': 'b537207f20cbfa02' })
  t.match(asana.headers, { 'x-hook-secret': 'b537207f20cbfa02' })
  for (const [scheme, body, status, expected, more] of [
    ['slack', SLACK, 200, /^\{"challenge":"3eZ"\}$/, {}],
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
  const token = await add('boards', 'monday')
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
  const places = { event_type_json: 'kind', id_header: 'X-My-Id' }
  const secret = await add('places', 'github', places)
  const sender = presetSender('github')
  const sending = { ...sendingTo(base, sender, secret), body: '{"kind": "mine"}' }
  const headers = { ...(await sender.sign(secret, sending)), 'X-My-Id': 'my-1' }
  const { id } = (await post(base, 'generic/places', sending.body, headers)).json<Ack>()
  const { facts } = await shown(base, id)
  t.match(facts, { 'Event type': 'mine', 'Delivery id': 'my-1', Verification: 'hmac-sha256 ok' })
})

await t.test('a type that is not signed is the one that is claimed, and is said', async (t) => {
  const secret = await add('claims', 'github')
  const sender = presetSender('github')
  const sending = sendingTo(base, sender, secret)
  const headers = await sender.sign(secret, sending)
  const first = (await post(base, 'generic/claims', sending.body, headers)).json<Ack>().id
  const other = { ...headers, 'X-GitHub-Event': 'release', 'X-GitHub-Delivery': 'other' }
  const second = (await post(base, 'generic/claims', sending.body, other)).json<Ack>().id
  t.match((await shown(base, second)).facts, { 'Event type': 'release (type not signed)' })
  const page = await request(`${base}/log/${second}`)
  t.match(page.text, new RegExp(`href="/log/${first}">event ${first}</a>, which came as`))
})

await t.test('the page of senders has each with what is to be done there', async (t) => {
  const { text } = await request(`${base}/providers/senders`)
  for (const { title, docs } of PRESETS) {
    t.ok(text.includes(`<h2>${title.replaceAll('&', '&amp;')}</h2>`), title)
    t.ok(text.includes(`href="${docs}"`), docs)
  }
  t.match(text, /HMAC-SHA1 of/)
})
