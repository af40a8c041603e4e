import { t } from 'tap'
import type { Test } from 'tap'
import {
  AWKWARD,
  chatBodies,
  codeHostBodies,
  paymentsBodies,
  RAW,
  sampleBody,
} from '../fixtures/signing-bodies.ts'
import type { Sent } from '../fixtures/signing-bodies.ts'
import { onPostgres } from '../helpers/backends.ts'
import type { Response } from '../helpers/http.ts'
import {
  addProvider,
  deliver,
  dice,
  eventIds,
  payloadOf,
  post,
  SECRETS,
  SIGNED,
  signatureHeaders,
  startHooks,
} from '../helpers/signing-setup.ts'
import type { Ack, Signed } from '../helpers/signing-setup.ts'

/** What was accepted, to be compared with what is stored. */
type Kept = Sent & { id: number }

await onPostgres(t, 'real bodies', async (t: Test, backend) => {
  const { base, server, env } = await startHooks(t, backend)
  await addProvider(base, 'raw', { open: true })
  const kept: Kept[] = []

  async function send(sent: Sent): Promise<void> {
    const answer = await post(base, sent.provider, sent.body, sent.headers)
    if (answer.status !== 202) t.fail(`${answer.status} for ${sent.provider}, expected 202`)
    else kept.push({ ...sent, id: answer.json<Ack>().id })
  }

  await t.test('every body of the senders is accepted', async (t) => {
    const sent = [...(await codeHostBodies()), ...paymentsBodies(), ...chatBodies()]
    for (let at = 0; at < sent.length; at += 16) {
      await Promise.all(sent.slice(at, at + 16).map(send))
    }
    t.ok(sent.length > 380, `${sent.length} bodies`)
    t.equal(kept.length, sent.length)
  })

  await t.test('awkward bodies are accepted', async (t) => {
    for (const [name, body] of Object.entries(AWKWARD)) {
      for (const provider of SIGNED) {
        const headers = signatureHeaders(provider, body)
        await send({ provider, body, headers: { ...headers, 'X-GitHub-Delivery': name } })
      }
    }
    for (const body of [...Object.values(RAW), ...Object.values(AWKWARD)]) {
      await send({ provider: 'generic/raw', body, headers: {} })
    }
    const ids = new Set(kept.map(({ id }) => id))
    t.equal(ids.size, kept.length, 'each is an event of its own')
    t.same(new Set(await eventIds(base)), ids, 'and there is no other')
  })

  await t.test('each comes back byte for byte from its page', async (t) => {
    for (const { id, body, provider } of kept) {
      const stored = await payloadOf(base, id)
      if (!stored.equals(body)) t.fail(`event ${id} of ${provider} differs from what was sent`)
    }
    t.ok(kept.length > 380)
  })

  await t.test('a flipped bit of body, signature or time stamp is refused', async (t) => {
    const roll = dice(41)
    const bodies = [AWKWARD['no UTF-8'], sampleBody(0), sampleBody(100)]
    const signed = SIGNED.flatMap((provider) =>
      bodies.map((body = Buffer.alloc(0)) => ({
        provider,
        body,
        // Signed once: only the flip makes the difference.
        headers: signatureHeaders(provider, body),
      })),
    )
    for (const { provider, body, headers } of signed) {
      t.equal((await post(base, provider, body, headers)).status, 202, `${provider}: unchanged`)
    }
    const before = await eventIds(base)
    let tried = 0
    async function refused(what: string, answer: Promise<Response>): Promise<void> {
      tried += 1
      const { status } = await answer
      if (status !== 401) t.fail(`${status} for ${what}, expected 401`)
    }
    for (const { provider, body, headers } of signed) {
      for (let i = 0; i < 25; i++) {
        const flipped = Buffer.from(body)
        const at = roll(body.length)
        flipped[at] = (flipped[at] ?? 0) ^ (1 << roll(8))
        await refused(`${provider}, byte ${at}`, post(base, provider, flipped, headers))
        const name = Object.keys(headers)[roll(Object.keys(headers).length)] ?? ''
        const value = flipCharacter(headers[name] ?? '', roll)
        const changed = { ...headers, [name]: value }
        await refused(`${provider}, ${name}: ${value}`, post(base, provider, body, changed))
      }
      await refused(`${provider}, cut`, post(base, provider, body.subarray(0, -1), headers))
      const longer = Buffer.concat([body, Buffer.from('\n')])
      await refused(`${provider}, longer`, post(base, provider, longer, headers))
      for (const other of SIGNED.filter((name) => name !== provider)) {
        const foreign = signatureHeaders(provider, body, { secret: SECRETS[other] })
        await refused(`${provider}, key of ${other}`, post(base, provider, body, foreign))
      }
    }
    t.equal(tried, signed.length * 54)
    t.same(await eventIds(base), before, 'nothing of it was stored')
  })

  await t.test('a signature does not fit another provider', async (t) => {
    const body = '{"crossed":true}'
    const all = SIGNED.map((provider) => signatureHeaders(provider, body))
    for (const provider of SIGNED) {
      const others: Signed[] = SIGNED.filter((name) => name !== provider)
      const foreign = Object.assign({}, ...others.map((name) => signatureHeaders(name, body)))
      const expected = provider === 'chat' ? 400 : 401
      t.equal((await post(base, provider, body, foreign)).status, expected, provider)
      t.equal((await post(base, provider, body, Object.assign({}, ...all))).status, 202, provider)
    }
    const sent = await deliver(base, 'code_host', body, {}, { secret: SECRETS.chat })
    t.equal(sent.status, 401)
  })

  await t.test('the column holds the same bytes', async (t) => {
    await server.stop()
    const rows = await backend.query(env, 'select id, payload, payload_size from hooks.events')
    const stored = new Map(rows.map((row) => [Number(row['id']), row]))
    for (const { id, body } of kept) {
      const row = stored.get(id)
      const payload = row?.['payload']
      if (!(payload instanceof Uint8Array)) t.fail(`event ${id} has no bytes`)
      else if (!body.equals(payload)) t.fail(`event ${id} differs from what was sent`)
      if (row?.['payload_size'] !== body.length) t.fail(`event ${id} has another size`)
    }
    t.ok(stored.size >= kept.length)
  })
})

/** One character changed by one bit, into another that a header may hold. */
function flipCharacter(text: string, roll: (bound: number) => number): string {
  for (;;) {
    const at = roll(text.length)
    const code = text.charCodeAt(at) ^ (1 << roll(7))
    if (code > 0x20 && code < 0x7f) {
      return text.slice(0, at) + String.fromCharCode(code) + text.slice(at + 1)
    }
  }
}
