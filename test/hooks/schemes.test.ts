import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { t, type Test } from 'tap'
import { schemeNamed } from '../../services/hooks/schemes/schemes.ts'
import type { Scheme } from '../../services/hooks/schemes/scheme.ts'
import { bodyStaleness, verifySignature } from '../../services/hooks/schemes/signatures.ts'
import { keyOf } from '../../services/hooks/schemes/keys.ts'
import { backends } from '../helpers/backends.ts'
import { refuseCommands, runCli } from '../helpers/cli.ts'
import { request, type Response } from '../helpers/http.ts'
import {
  FORM_TYPE,
  enable,
  eventIds,
  now,
  post,
  postForm,
  refusals,
  shown,
  startHooks,
  type Ack,
} from '../helpers/hooks.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { refuseAll, type Refusal } from '../helpers/refusals.ts'
import { attemptsOf, replay } from '../helpers/replays.ts'
import { keepSecret, secret } from '../helpers/secrets.ts'
import { SENDERS, type Sender, type Stamp } from '../helpers/schemes.ts'
import { cardOf, change, secretKey } from '../helpers/senders.ts'
import { until } from '../helpers/until.ts'

const [, postgres] = backends
const { base, env } = await startHooks(t, postgres, {
  GATEHOUSE_SECRET_KEY: secretKey(),
  HOOKS_REPLAY_TARGETS: '127.0.0.1',
})

/** Makes a provider by the command, with its secret on standard input. It has one refusal then. */
async function add(name: string, { scheme, flags = [] }: Sender, input: string): Promise<void> {
  const args = ['provider', 'add', name, '--scheme', scheme, '--secret', '-', '--enable', ...flags]
  const added = await runCli(args, { env, input })
  const { code, stdout, stderr } = added
  if (code !== 0 || stdout !== '') throw new Error(`provider add ended with ${code}: ${stderr}`)
  const known = async () => (await post(base, `generic/${name}`, '')).status !== 404
  await until(known, `${name} to be known`)
}

let made = 0

/** Not at once: the server, which the command calls, is in this process. */
const run = promisify(execFile)

function stampOf(changes: Partial<Stamp> = {}): Stamp {
  return { id: `delivery-${made++}`, at: now(), ...changes }
}

/** Sends what a sender signs. */
async function deliver(
  name: string,
  sender: Sender,
  key: string,
  stamp = stampOf(),
): Promise<Response> {
  const body = sender.body(stamp)
  return post(base, `generic/${name}`, body, await sender.headers(key, body, stamp))
}

const nameOf = ({ scheme }: Sender, at: number): string => `${scheme}-${at}`

for (const [at, sender] of SENDERS.entries()) {
  const name = nameOf(sender, at)
  const { scheme, refusal = 403, answer: accepted = 202 } = sender
  await t.test(`${name}: what its sender signs is verified, and nothing else`, async (t: Test) => {
    const key = sender.makeSecret()
    await add(name, sender, key)

    const stamp = stampOf()
    const answer = await deliver(name, sender, key, stamp)
    t.equal(answer.status, accepted, answer.text)
    const [newest = 0] = await eventIds(base)
    const ack = { provider: `generic:${name}`, trust_mode: 'signed', verified: true }
    if (accepted === 204) t.equal(answer.text, '')
    else t.match(answer.json(), { ...ack, id: newest })
    const { facts, headers } = await shown(base, newest)
    t.match(facts, {
      Verification: sender.detail ?? 'hmac-sha256 ok',
      'Event type': sender.type ?? 'none',
      'Delivery id': new RegExp(`^${sender.id ?? stamp.id}`),
    })
    t.equal(headers[sender.signature.toLowerCase()], '«redacted»', 'the signature is not stored')
    t.equal((await deliver(name, sender, key, stamp)).text, answer.text)
    t.equal((await eventIds(base))[0], newest, 'a repeat is the same event')
    t.match(await cardOf(base, `generic:${name}`), { Scheme: scheme, Secret: 'configured' })

    const before = await eventIds(base)
    await refuses(t, name, sender, key)
    t.same(await eventIds(base), before, 'nothing was stored')

    const other = sender.makeSecret()
    const rotated = await change(base, `generic:${name}`, 'rotate', { secret: other })
    t.equal(rotated.status, 200)
    t.equal((await deliver(name, sender, key)).status, accepted, 'the previous secret')
    t.equal((await deliver(name, sender, other)).status, accepted, 'the present one')
    await change(base, `generic:${name}`, 'rotate', { secret: other, overlap: '0' })
    t.equal((await deliver(name, sender, key)).status, refusal)
    t.equal((await deliver(name, sender, other)).status, accepted)

    await sendsOn(t, name, sender, other)
  })
}

/** One thing is changed, and it is refused. */
async function refuses(t: Test, name: string, sender: Sender, key: string): Promise<void> {
  const { signature, encoding, refusal = 403 } = sender
  const stamp = stampOf()
  const body = sender.body(stamp)
  const right = await sender.headers(key, body, stamp)
  const signed = right[signature] ?? ''
  const [prefix = ''] = /^.*?(?=[\w+/-]{40,}={0,2}$)/.exec(signed) ?? []
  const encoded = signed.slice(prefix.length)
  const bytes = Buffer.from(encoded, encoding)
  const flipped = Buffer.from(bytes)
  flipped[7] = (flipped[7] ?? 0) ^ 1
  const as = (text: string) => ({ ...right, [signature]: prefix + text })
  const others = (['hex', 'base64', 'base64url'] as const).filter((one) => one !== encoding)
  const wrong = 'wrong secret or altered body'
  const malformed = 'signature malformed'
  const cases: readonly (readonly [string, string, Readonly<Record<string, string>>])[] = [
    [wrong, `${body} `, right],
    [wrong, body.replace(/.$/s, (last) => String.fromCharCode(last.charCodeAt(0) ^ 1)), right],
    [wrong, body, as(flipped.toString(encoding))],
    [wrong, body, await sender.headers(sender.makeSecret(), body, stamp)],
    ...others.map((other) => [malformed, body, as(bytes.toString(other))] as const),
    [malformed, body, as(bytes.subarray(1).toString(encoding))],
    [malformed, body, as(`${encoded}A`)],
    [malformed, body, as('')],
    [malformed, body, { ...right, [signature]: `sha1=${encoded}` }],
    ['signature missing', body, without(right, signature)],
    ...Object.keys(right)
      .filter((header) => /time/i.test(header))
      .map((header) => ['header .*missing', body, without(right, header)] as const),
  ]
  for (const [reason, sent, headers] of cases) {
    const answer = await post(base, `generic/${name}`, sent, headers)
    t.equal(answer.status, refusal, `${reason}: ${JSON.stringify(headers)}`)
  }
  const late = sender.isTimed ? [-4_000, 4_000] : []
  for (const seconds of late) {
    const answer = await deliver(name, sender, key, stampOf({ at: now() + seconds }))
    t.equal(answer.status, refusal, `${seconds} s`)
  }
  const expected = [...cases.map(([reason]) => reason), ...late.map(() => 'window|stale')]
  const listed = await until(async () => {
    const found = await refusals(base, `&provider=generic:${name}`)
    return found.length === 1 + expected.length && found.toReversed().slice(1)
  }, 'the refusals to be listed')
  for (const [n, reason] of expected.entries()) {
    t.match(listed[n]?.reason, new RegExp(reason), `${n}`)
  }
}

function without(headers: Readonly<Record<string, string>>, name: string) {
  return Object.fromEntries(Object.entries(headers).filter(([one]) => one !== name))
}

/** An event is signed again for its receiver, and so is a sample: another provider verifies both. */
async function sendsOn(t: Test, name: string, sender: Sender, key: string): Promise<void> {
  const again = `${name}-again`
  await add(again, sender, key)
  const stamp = stampOf({ at: now() - 200 })
  await deliver(name, sender, key, stamp)
  const [id = 0] = await eventIds(base)
  const { answer: accepted = 202 } = sender
  const target = `${base}/webhooks/generic/${again}`
  t.equal((await replay(base, id, target)).status, 200)
  const [attempt] = await attemptsOf(base, id)
  const args = ['send-sample', again, '--scheme', sender.scheme, '--token-stdin']
  const sample = { env: { HOOKS_ADDR: new URL(base).host }, input: key }
  const sent = await runCli([...args, ...(sender.flags ?? [])], sample)
  if (sender.scheme === 'discord') {
    t.match(attempt, { outcome: 'failed', answer: /^401 / }, 'only its sender can sign')
    t.match(sent, { code: 2, stderr: /--scheme discord: only its sender can sign/ })
    return
  }
  t.match(attempt, { outcome: 'delivered', answer: new RegExp(`^${accepted} `) })
  t.match(sent, { code: 0, stdout: /^20[02] \{.*"trust_mode":"signed","verified":true/ })
  const [newest = 0, resigned = 0] = await eventIds(base)
  t.match((await shown(base, resigned)).facts, {
    'Event type': sender.type ?? 'none',
    'Delivery id': new RegExp(`^${sender.id ?? stamp.id}`),
  })
  t.match((await shown(base, newest)).facts, { Provider: `generic:${again}` })
}

await t.test('the window is inclusive both ways, for each scheme that signs a time', async (t) => {
  const at = 1_700_000_000
  let tried = 0
  for (const sender of SENDERS.filter(({ isTimed, scheme }) => isTimed && scheme !== 'hmac')) {
    const scheme = schemeNamed(sender.scheme)
    if (scheme === undefined) throw new Error(`there is no scheme ${sender.scheme}`)
    const text = sender.makeSecret()
    const body = sender.body({ id: 'one', at })
    const headers = lowerCase(await sender.headers(text, body, { id: 'one', at }))
    for (const [seconds, expected] of [
      [0, 'ok'],
      [300, 'ok'],
      [300.999, 'ok'],
      [301, 'stale by 1 s'],
      [-300, 'ok'],
      [-301, '1 s ahead of the window'],
    ] as const) {
      const receivedAt = new Date((at + seconds) * 1_000)
      const said = reasonOf(scheme, text, { headers, receivedAt, body })
      t.equal(said, expected, `${sender.scheme}: ${seconds} s`)
      tried++
    }
  }
  t.equal(tried, 36)
})

type Sent = { headers: Readonly<Record<string, string>>; receivedAt: Date; body: string }

function reasonOf(scheme: Scheme, text: string, { headers, receivedAt, body }: Sent): string {
  const name = scheme.algorithm === 'ed25519' ? 'discord' : scheme.secret && 'standard'
  const key = keyOf(name ?? 'hmac', text)
  const keys = { accepted: key === undefined ? [] : [key], retired: [] }
  const bytes = Buffer.from(body)
  const verifier = verifySignature(scheme, { headers, receivedAt }, keys, 300)
  verifier.update(bytes)
  const verification = verifier.finish(bytes)
  if ('reason' in verification) return verification.reason
  return bodyStaleness(scheme, JSON.parse(body), receivedAt, 300) ?? 'ok'
}

function lowerCase(headers: Readonly<Record<string, string>>) {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]),
  )
}

// RFC 4231, test case 2, and RFC 8032, section 7.1, test 2.

await t.test('published vectors of the algorithms', async (t) => {
  const hmac = schemeNamed('hmac')
  const discord = schemeNamed('discord')
  if (hmac === undefined || discord === undefined) throw new Error('two schemes are missing')
  const body = Buffer.from('what do ya want for nothing?')
  const vectors = {
    sha256: '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
    sha512:
      '164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea250554' +
      '9758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737',
  } as const
  for (const [algorithm, signature] of Object.entries(vectors)) {
    const scheme = { ...hmac, algorithm: algorithm as keyof typeof vectors }
    const head = { headers: { 'x-signature': signature }, receivedAt: new Date() }
    const verifier = verifySignature(scheme, head, { accepted: ['Jefe'], retired: [] }, 300)
    verifier.update(body)
    t.same(verifier.finish(body), { secret: 'current' }, algorithm)
  }
  const key = keyOf('discord', '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c')
  if (key === undefined) throw new Error('the public key was not read')
  const signature =
    '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da' +
    '085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00'
  const untimed = { ...discord, signed: '{body}', timestamp: [] }
  const head = { headers: { 'x-signature-ed25519': signature }, receivedAt: new Date() }
  const keys = { accepted: [key], retired: [] }
  const verify = (bytes: Buffer) => {
    const verifier = verifySignature(untimed, head, keys, 300)
    verifier.update(bytes)
    return verifier.finish(bytes)
  }
  t.same(verify(Buffer.of(0x72)), { secret: 'current' })
  t.match(verify(Buffer.of(0x73)), { status: 401 })
  t.match(verify(Buffer.alloc(1024 * 1024 + 1)), { reason: /^body over 1 MiB/ })
  t.equal(keyOf('discord', 'x'.repeat(64)), undefined)
})

const senderOf = (scheme: string): Sender => {
  const found = SENDERS.find((sender) => sender.scheme === scheme)
  if (found === undefined) throw new Error(`there is no sender ${scheme}`)
  return found
}

await t.test(
  'a check of the address is answered once it is verified, and not stored',
  async (t) => {
    const before = await eventIds(base)
    for (const [scheme, body, status, answer] of [
      ['slack', '{"type":"url_verification","challenge":"3eZ"}', 200, '{"challenge":"3eZ"}'],
      ['discord', '{"type":1,"id":"1","token":"x"}', 200, '{"type":1}'],
      ['discord', '{"type":0,"version":1}', 204, ''],
    ] as const) {
      const sender = senderOf(scheme)
      const name = `check-${made}`
      const key = sender.makeSecret()
      await add(name, sender, key)
      const right = await sender.headers(key, body, stampOf())
      const checked = await post(base, `generic/${name}`, body, right)
      t.match(checked, { status, text: answer }, body)
      const other = await sender.headers(sender.makeSecret(), body, stampOf())
      const refused = await post(base, `generic/${name}`, body, other)
      t.equal(refused.status, sender.refusal ?? 403, 'by a stranger')
      t.equal(refused.headers['content-type'], 'application/problem+json')
    }
    t.same(await eventIds(base), before)
  },
)

await t.test('a type that is not signed is the one that is claimed, and is said', async (t) => {
  const [sender] = SENDERS
  if (sender === undefined) throw new Error('there is no sender')
  const key = sender.makeSecret()
  await add('recorded', sender, key)
  const first = (await deliver('recorded', sender, key)).json<Ack>()
  const stamp = stampOf()
  const headers = await sender.headers(key, sender.body(stamp), stamp)
  const altered = { ...headers, 'X-GitHub-Event': 'release' }
  const second = (await post(base, 'generic/recorded', sender.body(stamp), altered)).json<Ack>()
  t.not(second.id, first.id)
  t.match((await shown(base, second.id)).facts, { 'Event type': 'release (type not signed)' })
  const page = await request(`${base}/log/${second.id}`)
  t.match(page.text, new RegExp(`href="/log/${first.id}">event ${first.id}</a>, which came as`))
})

await t.test('GitLab proves itself by a token, which is no signature', async (t) => {
  const token = keepSecret('gitlab', 'glwh-0123456789-abcdef')
  const args = ['provider', 'add', 'lab', '--scheme', 'gitlab', '--secret', '-', '--enable']
  t.match(await runCli(args, { env, input: `${token}\n` }), { code: 0, stdout: '' })
  const headers = {
    'X-Gitlab-Token': token,
    'X-Gitlab-Event': 'Push Hook',
    'X-Gitlab-Event-UUID': 'the same in a chain of webhooks',
    'Idempotency-Key': 'one',
  }
  const send = (given: Readonly<Record<string, string>>) => post(base, 'generic/lab', '{}', given)
  await until(async () => (await send(headers)).status === 202, 'the provider to be known')
  const ack = (await send(headers)).json<Ack>()
  t.match(ack, { provider: 'generic:lab', trust_mode: 'token', verified: false })
  const { facts, headers: stored } = await shown(base, ack.id)
  t.match(facts, { 'Event type': 'Push Hook', 'Delivery id': 'one', Verification: 'token ok' })
  t.equal(stored['x-gitlab-token'], '«redacted»')
  const basic = (password: string) =>
    `Basic ${Buffer.from(`anybody:${password}`).toString('base64')}`
  t.equal((await send({ Authorization: basic(token) })).status, 202, 'the password of Basic')
  for (const wrong of [
    { 'X-Gitlab-Token': secret('wrong-token') },
    { Authorization: basic('') },
    { Authorization: basic(`${token}:`) },
    { Authorization: `Basic ${Buffer.from(token).toString('base64')}` },
    { Authorization: 'Basic %%%' },
    { ...headers, Authorization: `Bearer ${secret('wrong-token')}` },
    {},
  ]) {
    t.equal((await send(wrong)).status, 403, JSON.stringify(Object.keys(wrong)))
  }
  const sample = ['send-sample', 'lab', '--scheme', 'gitlab', '--token-stdin']
  const sent = await runCli(sample, { env: { HOOKS_ADDR: new URL(base).host }, input: token })
  t.match(sent, { code: 0, stdout: /^202 \{.*"trust_mode":"token","verified":false/ })
})

await t.test('the page makes a provider of a scheme, and shows how to send to it', async (t) => {
  const own = {
    scheme: 'hmac',
    header: 'X-Own-Signature',
    prefix: 'v2=',
    encoding: 'base64url',
    algorithm: 'sha512',
    signed_text: '{id}.{timestamp}.{body}',
    timestamp_header: 'X-Own-Time',
    event_type_json: 'hello',
    id_header: 'X-Own-Id',
  }
  const forms = [{ scheme: 'github' }, { scheme: 'gitea' }, { scheme: 'standard' }, own]
  for (const [at, fields] of forms.entries()) {
    const name = `page-${at}`
    const page = await postForm(base, '/providers', { name, trust_mode: 'signed', ...fields })
    t.equal(page.status, 200, page.text.slice(0, 200))
    const made = /id="made-token"[^>]*><code>([^<]+)</.exec(page.text)?.[1] ?? ''
    keepSecret('made', plain(made))
    t.match(await cardOf(base, `generic:${name}`), { Scheme: fields.scheme, switch: 'off' })
    await enable(base, `generic:${name}`, true)
    const command = /id="made-curl"[^>]*><code>([^<]+)</.exec(page.text)?.[1] ?? ''
    const { stdout } = await run('bash', ['-c', plain(command)])
    t.match(stdout, /^\{"id":\d+,.*"trust_mode":"signed","verified":true/, fields.scheme)
  }
  const [newest = 0] = await eventIds(base)
  t.match((await shown(base, newest)).facts, { 'Event type': 'world' })

  const shop = { name: 'page-shop', trust_mode: 'signed', scheme: 'shopify' }
  const made = await postForm(base, '/providers', { ...shop, secret: secret('of-the-shop') })
  t.match(made.text, /BODY=.*\nSIGNATURE=/, 'it signs no id and no time, so the command sets none')

  const lab = { name: 'page-lab', trust_mode: 'signed', scheme: 'gitlab' }
  t.match(await postForm(base, '/providers', lab), { status: 200, text: /Authorization: Bearer/ })
  t.match(await cardOf(base, 'generic:page-lab'), { Scheme: 'gitlab (token)', badges: /token/ })
})

await t.test('what the page refuses names its field, and nothing is made', async (t: Test) => {
  const signed = { name: 'bad', trust_mode: 'signed' }
  const own = { ...signed, scheme: 'hmac', header: 'X-Own' }
  const cases: readonly (readonly [Readonly<Record<string, string>>, RegExp])[] = [
    [{ ...signed, scheme: 'paypal' }, /^scheme must be the name of a sender, such as github/],
    [{ ...signed, scheme: 'stripe' }, /^The sender makes the secret of stripe: give it here/],
    [{ ...signed, scheme: 'discord' }, /^The sender makes the secret of discord/],
    [{ ...signed, scheme: 'discord', secret: 'x' }, /must be the public key .*64 hex digits/],
    [{ ...signed, scheme: 'github', secret: 'short' }, /must be 8 to 256 characters/],
    [{ ...signed, scheme: 'gitlab', secret: 'short' }, /must be 8 to 256 characters/],
    [{ ...signed, scheme: 'hmac' }, /^header is missing/],
    [{ ...own, header: 'X Own' }, /^header must be the name of a header/],
    [{ ...own, header: 'Host' }, /^header must be .*of this sender: every request has host/],
    [{ ...own, id_header: 'Content-Length' }, /^id_header .*every request has content-length/],
    [{ ...signed, scheme: 'standard', id_header: 'X-I' }, /^id_header .*standard signs the id/],
    [{ ...own, algorithm: 'sha1' }, /^algorithm must be .*SHA-1 is refused/],
    [{ ...own, signed_text: '{timestamp}.{body}' }, /^timestamp_header is missing/],
    [{ ...own, timestamp_header: 'X-T' }, /^timestamp_header needs \{timestamp\} in signed_text/],
    [{ ...own, event_type_json: 'a', event_type_header: 'b' }, /exclude each other/],
  ]
  const state = async () => (await request(`${base}/providers`)).text.includes('generic:bad')
  await refuseAll(
    t,
    { service: 'hooks', base, state },
    cases.map(([fields, text]): Refusal => {
      const body = new URLSearchParams(fields).toString()
      return [{ call: 'POST /providers', headers: FORM_TYPE, body }, 422, undefined, text]
    }),
  )
  const navigates = { 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Site': 'same-origin' }
  const page = await postForm(base, '/providers', { ...own, encoding: 'base32' }, navigates)
  t.match(page, { status: 422, text: /<!doctype/i })
  t.match(page.text, 'value="X-Own"', 'what was typed is kept')
  t.match(page.text, /name="scheme" value="hmac"/, 'as is the sender')
})

await t.test('a secret of the sender is needed, and may come from a file', async (t: Test) => {
  const state = async () => (await request(`${base}/providers`)).text.includes('generic:filed')
  const add = (...flags: readonly string[]) => ['provider', 'add', 'filed', ...flags]
  const stdin = { args: add('--scheme', 'github', '--secret', '-') }
  await refuseCommands(t, { env, state }, [
    [
      add('--scheme', 'slack'),
      1,
      /^gatehouse: The sender makes the secret of slack: give it here/,
    ],
    [{ ...stdin, input: '' }, 1, /^gatehouse: The secret must be 8 to 256 characters/],
    [{ ...stdin, input: 'two lines\nof text' }, 1, /^gatehouse: The secret must be/],
  ])
  const file = join(await temporaryFolder(t), 'secret')
  const key = secret('filed')
  await writeFile(file, `${key}\n`)
  const added = await runCli(add('--scheme', 'gitea', '--secret', file, '--enable'), { env })
  t.match(added, { code: 0, stdout: '' })
  const sender = senderOf('gitea')
  await until(async () => (await deliver('filed', sender, key)).status === 202, 'the provider')
  const { stdout } = await runCli(['provider', 'list'], { env })
  t.match(
    stdout,
    /^generic:filed +signed gitea +enabled +configured +\/webhooks\/generic\/filed$/m,
  )
})

function plain(markup: string): string {
  return markup
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&')
}
