import { t, type Test } from 'tap'
import { keyOf } from '../../services/hooks/schemes/keys.ts'
import { PRESETS } from '../../services/hooks/schemes/presets/presets.ts'
import { schemeNamed } from '../../services/hooks/schemes/schemes.ts'
import { verifySignature } from '../../services/hooks/schemes/signatures.ts'
import { isSignable, signDelivery } from '../../services/hooks/schemes/signing.ts'
import { LIBRARY_VECTORS } from '../fixtures/library-vectors.ts'
import { PRESET_VECTORS } from '../fixtures/preset-vectors.ts'
import { VECTORS } from '../fixtures/signing-vectors.ts'
import { backends } from '../helpers/backends.ts'
import { runCli } from '../helpers/cli.ts'
import { enable, eventIds, now, post, postForm, shown, startHooks } from '../helpers/hooks.ts'
import type { Response } from '../helpers/http.ts'
import { PRESET_SENDERS, sendingTo } from '../helpers/preset-senders.ts'
import type { PresetSender, Sending } from '../helpers/preset-signing.ts'
import { secretKey } from '../helpers/senders.ts'

const [, postgres] = backends
const { base, env } = await startHooks(t, postgres, { GATEHOUSE_SECRET_KEY: secretKey() })

await t.test('each sender is there once, with its document and two sentences', async (t) => {
  t.same(names(PRESETS.map(({ name }) => name)), names(PRESET_SENDERS.map((one) => one.scheme)))
  t.ok(PRESETS.length >= 60, `${PRESETS.length} senders`)
  for (const { name, title, docs, setup, scheme } of PRESETS) {
    t.match(name, /^[a-z0-9]+(?:-[a-z0-9]+)*$/)
    t.ok(title.length > 2, name)
    t.match(docs, /^https:\/\/[^\s]+$/, name)
    t.match(setup, /^[^.]{10,}.*\. .{10,}\.$/s, `${name}: ${setup}`)
    const headers = 'signature' in scheme ? scheme.signature : scheme.token
    t.same(
      headers.filter((one) => one !== one.toLowerCase() && !one.startsWith('json:')),
      [],
      `${name}: headers in lower case`,
    )
  }
})

function names(list: readonly string[]): readonly string[] {
  return list.toSorted()
}

await t.test('what is said of its test is true', async (t) => {
  const published = new Set([...PRESET_VECTORS.map((one) => one.scheme), 'github', 'slack'])
  const byLibrary = PRESET_SENDERS.filter((one) => one.byLibrary)
  const libraries = new Set([...byLibrary, ...LIBRARY_VECTORS].map((one) => one.scheme))
  for (const { name, tested } of PRESETS) {
    const best = published.has(name) ? 'vector' : libraries.has(name) ? 'library' : 'document'
    t.equal(tested, best, name)
  }
  t.ok(VECTORS.length >= 4, 'the vectors of github, stripe and slack stand beside')
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
  for (const { name, scheme } of PRESETS) {
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

await t.test('gatehouse schemes lists them, and provider add takes their names', async (t) => {
  const table = await runCli(['schemes'])
  t.match(table, { code: 0, stderr: '' })
  for (const { name, docs } of PRESETS) t.ok(table.stdout.includes(` ${docs}`), name)
  t.match(table.stdout, /^vercel +Vercel \(SHA-1\) +HMAC-SHA1 of \{body\} +by document/m)
  const listed = await runCli(['schemes', '--json'])
  t.match(
    JSON.parse(listed.stdout).find((one: { name: string }) => one.name === 'telegram'),
    { title: 'Telegram (secret token)', trust_mode: 'token', verifies: 'a token, no signature' },
  )
  const input = PRESET_SENDERS[0]?.makeSecret() ?? ''
  const add = ['provider', 'add', 'errors', '--scheme', 'sentry', '--secret', '-', '--enable']
  t.match(await runCli(add, { env, input }), { code: 0, stdout: '' })
  const list = await runCli(['provider', 'list'], { env })
  t.match(list.stdout, /^generic:errors +signed sentry +enabled/m)
})

function sendingOf(sender: PresetSender, secret: string, at = now()): Sending {
  return sendingTo(`${base}/webhooks/generic/${sender.scheme}`, sender, secret, at)
}

type Headers = Readonly<Record<string, string | readonly string[]>>

function send(sender: PresetSender, body: string, headers: Headers): Promise<Response> {
  const type = sender.contentType ?? 'application/json'
  return post(base, `generic/${sender.scheme}`, body, { 'Content-Type': type, ...headers })
}

for (const sender of PRESET_SENDERS) {
  const { scheme } = sender
  await t.test(`${scheme}: what its sender sends is taken, and nothing else`, async (t: Test) => {
    const secret = sender.makeSecret()
    const fields = { name: scheme, trust_mode: 'signed', scheme, secret }
    const own = scheme === 'hmac' ? { header: 'X-Signature' } : {}
    const created = await postForm(base, '/providers', { ...fields, ...own })
    t.equal(created.status, 200, created.text.slice(0, 300))
    if (scheme !== 'hmac') {
      t.match(created.text, /id="made-url"/)
      t.match(created.text, /<dt>At the sender<\/dt>/, 'what is to be done there')
    }
    await enable(base, `generic:${scheme}`, true)

    const sending = sendingOf(sender, secret)
    const headers = await sender.sign(secret, sending)
    const taken = await send(sender, sending.body, headers)
    t.equal(taken.status, sender.stored, taken.text)
    if (sender.stored === 204) t.equal(taken.text, '')
    const [id = 0] = await eventIds(base)
    const { facts, headers: stored } = await shown(base, id)
    const type = sender.type ?? 'none'
    t.match(facts, { Verification: sender.detail, 'Event type': type, Provider: scheme })
    const own_id = sender.hasId ? sending.id : ''
    t.ok(facts['Delivery id']?.startsWith(own_id), `id: ${facts['Delivery id']}`)
    for (const name of sender.proof.filter((one) => /signature|token|authorization/i.test(one))) {
      if (!/time/i.test(name)) t.equal(stored[name.toLowerCase()], '«redacted»', name)
    }
    await refuses(t, sender, secret)
  })
}

/** One thing is changed, and it is refused. */
async function refuses(t: Test, sender: PresetSender, secret: string): Promise<void> {
  const before = await eventIds(base)
  const sending = sendingOf(sender, secret)
  const { body } = sending
  const right = await sender.sign(secret, sending)
  const other = sender.makeSecret()
  const otherBody = sender.body(sending, other)
  const flipped = Object.fromEntries(
    Object.entries(right).map(([name, value]) => [
      name,
      sender.proof.includes(name) ? flip(value) : value,
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
  for (const name of sender.proof) {
    const { [name]: value = '', ...without } = right
    cases.push([`without ${name}`, body, without])
    // Of this header node:http keeps the first one alone, as the standard has it.
    if (name !== 'authorization')
      cases.push([`twice ${name}`, body, { ...without, [name]: [value, value] }])
  }
  for (const seconds of sender.isTimed ? [-4_000, 4_000] : []) {
    const late = sendingOf(sender, secret, now() + seconds)
    cases.push([`${seconds} s`, late.body, await sender.sign(secret, late)])
  }
  for (const [what, sent, headers] of cases) {
    const answer = await send(sender, sent, headers)
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
