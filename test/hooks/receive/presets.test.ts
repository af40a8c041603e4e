import { createHmac, hash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { t, type Test } from 'tap'
import { listSenders } from '../../../services/hooks/receive/schemes/describe.ts'
import { keyOf } from '../../../services/hooks/receive/schemes/keys.ts'
import { PRESETS } from '../../../services/hooks/receive/schemes/presets/presets.ts'
import type { Key, Scheme } from '../../../services/hooks/receive/schemes/scheme.ts'
import { BUILT_IN, schemeNamed } from '../../../services/hooks/receive/schemes/schemes.ts'
import { verifySignature } from '../../../services/hooks/receive/schemes/signatures.ts'
import { isSignable, signDelivery } from '../../../services/hooks/receive/schemes/signing.ts'
import { PRESET_EVENTS } from '../../fixtures/preset-events.ts'
import { LIBRARY_VECTORS, PRESET_VECTORS, VECTORS } from '../../fixtures/preset-vectors.ts'
import { apiOf } from '../../helpers/api.ts'
import { postgres } from '../../helpers/backends.ts'
import { runCli } from '../../helpers/cli.ts'
import {
  FORM_TYPE,
  eventIds,
  newest,
  now,
  post,
  postForm,
  refusals,
  startHooks,
  type Fields,
} from '../../helpers/hooks.ts'
import { request } from '../../helpers/http.ts'
import {
  PRESET_SENDERS,
  presetSender,
  senderOf,
  jwt,
  sendingTo,
  type PresetSender,
  type SenderRow,
  type Sending,
} from './preset-senders.ts'
import { expectStatus } from '../../helpers/refusals.ts'
import { attemptsOf, replay } from '../../helpers/replays.ts'
import { keepSecret } from '../../helpers/secrets.ts'
import { secretKey } from '../../helpers/senders.ts'
import { until } from '../../helpers/until.ts'

const { base } = await startHooks(t, postgres, {
  GATEHOUSE_SECRET_KEY: secretKey(),
  HOOKS_REPLAY_TARGETS: '127.0.0.1',
})
const api = apiOf(base)

type Headers = Readonly<Record<string, string | readonly string[]>>

/** Senders that an operator describes: the fields of the form, and the sender. */
const DESCRIBED: readonly (readonly [Fields, SenderRow])[] = [
  [
    { header: 'X-Check', encoding: 'base64url', algorithm: 'sha512' },
    { proof: { 'X-Check': '{mac}' }, mac: 'sha512 base64url' },
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
      mac: 'sha256 base64',
      signs: '{id}.{at}.{body}',
      proof: { 'X-Own-Signature': 'v0={mac}', 'X-Own-Time': '{at}', 'X-Own-Id': '{id}' },
      body: { event: { name: 'thing.done' } },
      type: 'thing.done',
      id: '{id}',
    },
  ],
]

/** A provider that is enabled, with its sender. */
type Source = { name: string; sender: PresetSender; secret: string }

async function add(name: string, sender: PresetSender, more: Fields = {}) {
  const { scheme } = sender
  const secret = sender.makeSecret()
  const fields = { name, trust_mode: 'signed', scheme, secret, enabled: 'true', ...more }
  const made = await expectStatus(200, postForm(base, '/providers', fields), name)
  if (scheme !== 'hmac' && !/id="made-url".*<dt>At the sender<\/dt>/s.test(made.text)) {
    throw new Error(`it is not said what is to be done at ${scheme}`)
  }
  return { name, sender, secret }
}

const addPreset = (name: string, scheme: string, more: Fields = {}) =>
  add(name, presetSender(scheme), more)

/** A delivery of a sender to its provider, not signed yet. */
function sendingOf({ name, sender, secret }: Source, at = now()) {
  return sendingTo(`${base}/webhooks/generic/${name}`, sender, secret, at)
}

function send({ name, sender }: Source, body: string, headers: Headers, query = '') {
  const type = { 'Content-Type': sender.contentType }
  return post(base, `generic/${name}${query}`, body, { ...type, ...headers })
}

const signed = ({ sender, secret }: Source, sending: Sending) => sender.sign(secret, sending)

/** Whoever knows the address, but not the secret. */
const stranger = (source: Source) => ({ ...source, secret: source.sender.makeSecret() })

/** Signs a delivery, with these changes, and sends it. */
async function deliver(source: Source, changes: Partial<Sending> = {}, more: Headers = {}) {
  const sending = { ...sendingOf(source), ...changes }
  return send(source, sending.body, { ...(await signed(source, sending)), ...more })
}

const of = ({ name }: Source) => `&provider=generic:${name}`

/** The events of a provider. */
async function eventsOf(source: Source) {
  const { json } = await api<{ events: readonly object[] }>('GET', `/events?${of(source)}`)
  return json.events
}

for (const scheme of ['github', 'stripe', 'meta', 'dropbox', 'trello', 'asana', 'woocommerce']) {
  await addPreset(`to-${scheme}`, scheme)
}

/** Vectors that senders have published, with those of the three providers that are built in. */
const PUBLISHED = [
  ...PRESET_VECTORS,
  ...VECTORS.map(({ provider, name, ...vector }) => {
    const at = provider === 'code_host' ? 0 : vector.at
    return { ...vector, at, scheme: BUILT_IN[provider], from: name, url: '' }
  }),
]

/** Those whose keys are fetched are in `fetched.test.ts`. */
const SIGNED_HERE = PRESETS.filter(({ scheme }) => !('fetched' in scheme))

await t.test('each sender is there once, and what is said of its test is true', async (t) => {
  const known = SIGNED_HERE.map(({ name }) => name)
  t.same(known.toSorted(), PRESET_SENDERS.map((one) => one.scheme).toSorted())
  t.ok(PRESETS.length >= 60, `${PRESETS.length} senders`)
  const published = new Set([...PRESET_VECTORS.map((one) => one.scheme), 'github', 'slack'])
  const byLibrary = PRESET_SENDERS.filter((one) => one.isLibrary)
  const libraries = new Set([...byLibrary, ...LIBRARY_VECTORS].map((one) => one.scheme))
  for (const { name, tested } of SIGNED_HERE) {
    const best = published.has(name) ? 'vector' : libraries.has(name) ? 'library' : 'document'
    t.equal(tested, best, name)
  }
})

/** Verifies a body that comes byte by byte. */
function verify(
  scheme: Scheme,
  head: Parameters<typeof verifySignature>[1],
  key: Key,
  body: Buffer,
) {
  const verifier = verifySignature(scheme, head, { accepted: [key], retired: [] }, 300)
  for (const byte of body) verifier.update(Buffer.of(byte))
  return verifier.finish(body)
}

await t.test(
  'vectors of senders and their libraries are verified at their time, and nothing beside them',
  async (t) => {
    for (const vector of [...PUBLISHED, ...LIBRARY_VECTORS]) {
      const { scheme: name, from, secret, body, headers, at, url = '' } = vector
      const scheme = schemeNamed(name)
      const key = scheme?.secret === undefined ? secret : keyOf(name, secret)
      if (scheme === undefined || key === undefined) throw new Error(`${name} has no key`)
      const received = (text: string, receivedAt: number) => {
        const head = { headers, receivedAt: new Date(receivedAt * 1_000), method: 'POST', url }
        return verify(scheme, head, key, Buffer.from(text))
      }
      t.same(received(body, at), { secret: 'current' }, from)
      t.match(received(body.replace(/.\s*$/, 'x'), at), { status: 401 }, `${from}, other body`)
      if (at > 0) t.match(received(body, at + 400), { reason: /stale/ }, `${from}, later`)
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
    const head = { headers: made, receivedAt: at }
    t.same(verify(scheme, head, key, body), { secret: 'current' }, name)
  }
  t.ok(signs.length > 40, `${signs.length} schemes sign`)
})

await t.test('gatehouse schemes lists them', async (t) => {
  const table = await runCli(['schemes'])
  for (const { name, docs } of PRESETS) t.ok(table.stdout.includes(` ${docs}`), name)
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

const LISTED = PRESET_SENDERS.map((sender) => {
  const fields = sender.scheme === 'hmac' ? { header: 'X-Signature' } : {}
  return [sender.scheme, fields, sender] as const
})
const OWN = DESCRIBED.map(
  ([fields, row], at) => [`own-${at}`, fields, senderOf('hmac', row)] as const,
)

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
  await t.test(`${name}: what its sender sends is taken, and nothing else`, async (t) => {
    const source = await add(name, sender, fields)
    const sending = sendingOf(source)
    const taken = await deliver(source, sending)
    t.equal(taken.status, sender.stored, taken.text)
    if (sender.stored === 204) t.equal(taken.text, '')
    const stored = await newest(base, of(source))
    const isNew = NEW_EACH_TIME.has(sender.scheme)
    t.match(stored, {
      verify_detail: sender.detail,
      event_type: sender.type,
      external_id: sender.idOf(sending) ?? (isNew ? null : /^sha256:/),
    })
    for (const one of sender.proof.filter((part) => /signature|token|auth|check/i.test(part))) {
      if (!/time/i.test(one)) t.equal(stored.headers[one.toLowerCase()], '«redacted»', one)
    }
    await deliver(source, sending)
    await refuses(t, source)
    t.equal((await eventsOf(source)).length, isNew ? 2 : 1, 'a repeat, and nothing else is stored')
  })
}

await t.test('other forms of deliveries say what they are, too', async (t) => {
  const sources = new Map<string, Source>()
  for (const { scheme, body, type, id } of PRESET_EVENTS) {
    const source = sources.get(scheme) ?? (await addPreset(`forms-${scheme}`, scheme))
    sources.set(scheme, source)
    const isForm = body instanceof URLSearchParams
    const sent = isForm ? String(body) : JSON.stringify(body)
    const taken = await deliver(source, { body: sent }, isForm ? FORM_TYPE : {})
    t.equal(taken.status, source.sender.stored, taken.text)
    const expected = { event_type: type, external_id: id ?? /^sha256:/ }
    t.match(await newest(base, of(source)), expected, sent)
  }
})

await t.test('a later try is a repeat, and another event of the same bytes is none', async (t) => {
  const hubspot = (eventId: number, occurredAt: number, attemptNumber: number) =>
    JSON.stringify([{ subscriptionId: 1, eventId, occurredAt, attemptNumber }])
  const source = await addPreset('tries', 'hubspot')
  for (const [body, events] of [
    [hubspot(2, 3, 0), 1],
    [hubspot(2, 3, 1), 1],
    [hubspot(7, 3, 0), 2],
    [hubspot(7, 4, 0), 3],
  ] as const) {
    t.equal((await deliver(source, { body })).status, source.sender.stored)
    t.equal((await eventsOf(source)).length, events, body)
  }
})

await t.test('what is sent on is signed again', async (t) => {
  const discord = ['discord', {}, presetSender('discord')] as const
  for (const [name, fields, sender] of [...OWN, discord]) {
    const source = await add(`${name}-first`, sender, fields)
    await deliver(source)
    const { id } = await newest(base, of(source))
    const again = `${name}-again`
    await add(again, sender, { ...fields, secret: source.secret })
    await replay(base, id, `${base}/webhooks/generic/${again}`)
    const [attempt] = await attemptsOf(base, id)
    const answer = name === 'discord' ? /^401 / : /^202 /
    t.match(attempt, { answer }, `${name}: by its scheme, which only Discord itself can`)
  }
})

/** One thing is changed, and it is refused. */
async function refuses(t: Test, source: Source) {
  const { sender } = source
  const sending = sendingOf(source)
  const { body } = sending
  const right = await signed(source, sending)
  const other = stranger(source)
  const foreign = sendingOf(other)
  const cases: [string, string, Headers][] = [
    ['another key', foreign.body, await signed(other, foreign)],
  ]
  if (sender.detail !== 'token ok') {
    const last = body.replace(/[\]}a-z](\s*)$/i, (end) => (end.startsWith('b') ? 'c' : `b`))
    cases.push(['another body', last, right])
  }
  for (const header of sender.proof) {
    const { [header]: value = '', ...without } = right
    cases.push([`without ${header}`, body, without])
    // Of this header node:http keeps the first one alone, as the standard has it.
    if (header !== 'authorization')
      cases.push([`twice ${header}`, body, { ...without, [header]: [value, value] }])
  }
  for (const seconds of sender.isTimed ? [-4_000, 4_000] : []) {
    const late = sendingOf(source, now() + seconds)
    cases.push([`${seconds} s`, late.body, await signed(source, late)])
  }
  for (const [what, sent, headers] of cases) {
    const answer = await send(source, sent, headers)
    t.equal(answer.status, sender.refused, `${what}: ${answer.text}`)
  }
}

await t.test('a delivery with the headers of another sender says whose they are', async () => {
  for (const [to, from, title] of [
    ['github', 'sentry', 'Sentry: scheme sentry'],
    ['stripe', 'lemon-squeezy', 'Lemon Squeezy: scheme lemon-squeezy'],
  ] as const) {
    const sender = presetSender(from)
    await deliver({ name: `to-${to}`, sender, secret: sender.makeSecret() })
    const expected = new RegExp(`missing; the headers are those of ${title}`)
    await until(async () => {
      const listed = await refusals(base, `&provider=generic:to-${to}`)
      return listed.some(({ reason }) => expected.test(reason))
    }, `${to} to be told of ${from}`)
  }
})

const ZOOM = '{"event":"endpoint.url_validation","payload":{"plainToken":"qgg8"}}'
const SLACK = '{"type":"url_verification","challenge":"3eZ"}'
const HOOKSHOT = { 'User-Agent': 'WooCommerce/10.1.0 Hookshot (WordPress/6.8)' }
const TWITCH = { 'Twitch-Eventsub-Message-Type': 'webhook_callback_verification' }

await t.test('checks of an address are answered as the sender asks, and not stored', async (t) => {
  const before = await eventIds(base)
  const hub = 'hub.challenge=1158201444'
  const wrong = { ...HOOKSHOT, 'X-WC-Webhook-Signature': 'eA==' }
  const cases: readonly (readonly [string, 'GET' | 'HEAD' | 'POST', Headers, number, string])[] = [
    [`to-meta?hub.mode=subscribe&${hub}&hub.verify_token=x`, 'GET', {}, 200, '1158201444'],
    ['to-dropbox?challenge=abc%20d', 'GET', {}, 200, 'abc d'],
    ['to-dropbox', 'GET', {}, 405, ''],
    ['to-trello', 'HEAD', {}, 200, ''],
    ['to-github?challenge=abc', 'GET', {}, 405, ''],
    ['to-woocommerce', 'POST', HOOKSHOT, 200, ''],
    ['to-woocommerce', 'POST', wrong, 403, ''],
    ['to-woocommerce', 'POST', { 'User-Agent': 'curl/8' }, 403, ''],
  ]
  for (const [path, method, headers, status, body] of cases) {
    const answer = await request(`${base}/webhooks/generic/${path}`, { method, headers })
    t.equal(answer.status, status, `${method} ${path}`)
    if (status !== 200) continue
    t.equal(answer.text, body)
    const text = { 'content-type': 'text/plain', 'content-security-policy': 'sandbox' }
    if (body !== '') t.match(answer.headers, text)
    t.equal(answer.headers['x-content-type-options'], 'nosniff')
  }
  const fields = {
    name: 'graph',
    trust_mode: 'signed',
    scheme: 'microsoft-graph',
    enabled: 'true',
  }
  const graph = await postForm(base, '/providers', fields)
  const [, token = ''] = /id="made-token"[^>]*><code>([^<]+)</.exec(graph.text) ?? []
  keepSecret('graph', token)
  const validated = `generic/graph?token=${token}&validationToken=Validation%3A+1`
  t.match(await post(base, validated, ''), { status: 200, text: 'Validation: 1' })
  await expectStatus(403, post(base, 'generic/graph?validationToken=1', ''))
  const asana = await post(base, 'generic/to-asana', '', { 'X-Hook-Secret': 'b537207f20cbfa02' })
  t.match(asana, { status: 200, text: '', headers: { 'x-hook-secret': 'b537207f20cbfa02' } })
  for (const [scheme, body, status, text, more] of [
    ['slack', SLACK, 200, /^\{"challenge":"3eZ"\}$/, {}],
    ['discord', '{"type":0}', 204, /^$/, {}],
    ['discord', '{"type":1}', 200, /^\{"type":1\}$/, {}],
    ['zoom', ZOOM, 200, /^\{"plainToken":"qgg8","encryptedToken":"[0-9a-f]{64}"\}$/, {}],
    ['twitch', '{"challenge":"pogchamp"}', 200, /^pogchamp$/, TWITCH],
  ] as const) {
    const source = await addPreset(`check-${status}-${scheme}`, scheme)
    const answer = await deliver(source, { body }, more)
    t.match(answer, { status, text }, scheme)
    if (scheme === 'discord') t.equal(answer.headers['content-type'], 'application/json')
    const refused = await deliver(stranger(source), { body }, more)
    t.equal(refused.status, source.sender.refused)
  }
  t.same(await eventIds(base), before)
})

await t.test('a query is signed with the address, and takes nothing of the body', async (t) => {
  const till = await addPreset('till', 'square')
  const plain = sendingOf(till)
  const sending = { ...plain, url: `${plain.url}?till=1` }
  const headers = await signed(till, sending)
  const { body } = sending
  const half = Math.floor(body.length / 2)
  const moved = `?till=1${body.slice(0, half)}`
  for (const [query, sent, status] of [
    ['?till=1', body, 202],
    ['?till=2', body, 403],
    ['', body, 403],
    [moved.replaceAll('"', '%22'), body.slice(half), 403],
    [moved, body.slice(half), 403],
  ] as const) {
    t.equal((await send(till, sent, headers, query)).status, status, query)
  }
})

await t.test('of many signatures by a public key the first four count', async (t) => {
  const many = await addPreset('many', 'standard-v1a')
  for (const [others, status] of [
    [3, 202],
    [4, 403],
  ] as const) {
    const sending = sendingOf(many)
    const right = (await signed(many, sending))['webhook-signature']
    const wrong = (await signed(stranger(many), sending))['webhook-signature']
    const all = `${wrong} `.repeat(others) + right
    const answer = await deliver(many, sending, { 'webhook-signature': all })
    t.equal(answer.status, status, `${others}`)
  }
})

/** A body and its headers, with the status that they are answered with. */
type Change = readonly [body: string, status: number, headers?: Headers]

async function sendAll(t: Test, source: Source, changes: readonly Change[]) {
  for (const [body, status, headers = {}] of changes) {
    const what = `${body.slice(0, 50)} ${JSON.stringify(headers)}`
    t.equal((await send(source, body, headers)).status, status, what)
  }
}

await t.test('a field of a form that looks like another one is refused', async (t) => {
  const calls = await addPreset('calls', 'twilio')
  const form = 'CallStatus=done&To=me'
  const headers = await signed(calls, { ...sendingOf(calls), body: form })
  await sendAll(t, calls, [
    [form, 202, headers],
    ['To=me&CallStatus=done', 202, headers],
    ['CallStatus=done&CallStatus=done&To=me', 403, headers],
    ['{"CallStatus": "done"}', 403, headers],
    [`${form}${'&'.repeat(70_000)}`, 403, headers],
  ])
})

await t.test(
  'a token of Netlify says by itself neither its algorithm nor its issuer',
  async (t) => {
    const deploys = await addPreset('deploys', 'netlify')
    const body = '{"state": "ready"}'
    const claims = { iss: 'netlify', sha256: hash('sha256', body) }
    const made = (more: object, head?: object) => jwt(deploys.secret, { ...claims, ...more }, head)
    const tokens = [
      made({ sha256: hash('sha256', '{}') }),
      made({ sha256: undefined }),
      made({ iss: 'castle' }),
      made({}, { alg: 'RS256' }),
      made({}, { alg: 'HS256', crit: ['b64'], b64: false }),
      made({}, { alg: 'none' }).replace(/[^.]*$/, ''),
    ]
    await sendAll(t, deploys, [
      [body, 202, { 'X-Webhook-Signature': made({}) }],
      ...tokens.map((token): Change => [body, 403, { 'X-Webhook-Signature': token }]),
    ])
  },
)

await t.test(
  'of a notification of Adyen there is one, because only the first is signed',
  async (t) => {
    const tolls = await addPreset('tolls', 'adyen')
    const { body } = sendingOf(tolls)
    const event = JSON.parse(body)
    const notificationItems = [...event.notificationItems, {}]
    await sendAll(t, tolls, [
      [body, 202],
      [JSON.stringify({ ...event, notificationItems }), 403],
      [body.replace('4200', '42000'), 403],
    ])
  },
)

await t.test('the time and the list of signed headers are among the signed ones', async (t) => {
  const pages = await addPreset('pages', 'contentful')
  const page = sendingOf(pages)
  const right = await signed(pages, page)
  /** Signed rightly, but the list has other headers than it must have. */
  const listing = (list: string, signed: string): Change => {
    const text = `POST\n/webhooks/generic/pages\n${signed}\n${page.body}`
    const mac = createHmac('sha256', pages.secret).update(text).digest('hex')
    const other = { 'X-Contentful-Signature': mac, 'X-Contentful-Signed-Headers': list }
    return [page.body, 403, { ...right, ...other }]
  }
  const names = 'x-contentful-signed-headers'
  const time = 'x-contentful-timestamp'
  await sendAll(t, pages, [
    [page.body, 202, right],
    listing(names, `${names}:${names}`),
    listing(time, `${time}:${right['X-Contentful-Timestamp']}`),
    listing('', ''),
  ])
})

await t.test('a challenge of monday.com is answered to whoever has the token', async (t) => {
  const boards = await addPreset('boards', 'monday')
  const challenge = '{"challenge":"3eZbrw1aB1o"}'
  const query = `?token=${boards.secret}`
  const answer = await send(boards, challenge, {}, query)
  const type = { 'content-type': 'application/json' }
  t.match(answer, { status: 200, text: challenge, headers: type })
  await expectStatus(403, send(boards, challenge, {}))
  t.same(await eventsOf(boards), [], 'a challenge is no event')
  const event = '{"challenge": "x", "event": {"type": "create_pulse"}}'
  await expectStatus(202, send(boards, event, {}, query))
})

await t.test('an operator says where type and id of a known sender stand', async (t) => {
  const fields = { event_type_json: 'kind', id_header: 'X-My-Id' }
  const places = await addPreset('places', 'github', fields)
  await deliver(places, { body: '{"kind": "mine"}' }, { 'X-My-Id': 'my-1' })
  t.match(await newest(base, of(places)), { event_type: 'mine', external_id: 'my-1' })
})

await t.test('the page of senders has each with what is to be done there', async (t) => {
  const { text } = await request(`${base}/providers/senders`)
  for (const { title, docs } of PRESETS) {
    t.ok(text.includes(`<h2>${title.replaceAll('&', '&amp;')}</h2>`), title)
    t.ok(text.includes(`href="${docs}"`), docs)
  }
})
