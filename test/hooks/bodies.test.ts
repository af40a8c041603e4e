import { once } from 'node:events'
import { request as send } from 'node:http'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { t } from 'tap'
import type { Test } from 'tap'
import {
  chatBodies,
  codeHostBodies,
  paymentsBodies,
  sampleBody,
} from '../fixtures/signing-bodies.ts'
import type { Sent } from '../fixtures/signing-bodies.ts'
import { countAnswers, rawExchange, request } from '../helpers/http.ts'
import { onPostgres } from '../helpers/backends.ts'
import type { Response } from '../helpers/http.ts'
import {
  SECRETS,
  SIGNED,
  addProvider,
  deliver,
  dice,
  eventIds,
  payloadOf,
  post,
  signatureHeaders,
  startHooks,
} from '../helpers/hooks.ts'
import type { Ack, Signed } from '../helpers/hooks.ts'
import { until } from '../helpers/until.ts'

const LIMIT = 65_536
const PATH = '/webhooks/generic/lan'
const ROUTE = '/webhooks/generic/:name'
const PROBLEM = ['type', 'title', 'status', 'detail', 'instance']

/** What was accepted, to be compared with what is stored. */
type Kept = Sent & { id: number }

await onPostgres(t, 'bodies', async (t: Test, backend) => {
  const { base, server, env } = await startHooks(t, backend, { HOOKS_MAX_BODY: '64KiB' })
  await addProvider(base, 'lan', { open: true })
  const port = Number(new URL(base).port)
  const head = (...lines: readonly string[]): string =>
    [`POST ${PATH} HTTP/1.1`, 'Host: x', ...lines, '', ''].join('\r\n')
  const answered = async (): Promise<number> =>
    (await countAnswers(base, ROUTE, 499)) + (await countAnswers(base, ROUTE, 400))

  const kept: Kept[] = []

  async function keep(sent: Sent): Promise<void> {
    const answer = await post(base, sent.provider, sent.body, sent.headers)
    if (answer.status !== 202) t.fail(`${answer.status} for ${sent.provider}, expected 202`)
    else kept.push({ ...sent, id: answer.json<Ack>().id })
  }

  await t.test('every body of the senders is accepted', async (t) => {
    const sent = [...(await codeHostBodies()), ...paymentsBodies(), ...chatBodies()]
    for (let at = 0; at < sent.length; at += 16) {
      await Promise.all(sent.slice(at, at + 16).map(keep))
    }
    t.ok(sent.length > 380, `${sent.length} bodies`)
    const ids = new Set(kept.map(({ id }) => id))
    t.equal(ids.size, sent.length, 'each is an event of its own')
    t.same(new Set(await eventIds(base)), ids, 'and there is no other')
  })

  await t.test('a flipped bit of body, signature or time stamp is refused', async (t) => {
    const roll = dice(41)
    const noText = Buffer.from([0x7b, 0x22, 0x66, 0x22, 0x3a, 0x22, 0xff, 0xfe, 0xc3, 0x22, 0x7d])
    const bodies = [noText, sampleBody(0), sampleBody(100)]
    const signed = SIGNED.flatMap((provider) =>
      bodies.map((body) => ({
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
      for (let i = 0; i < 10; i++) {
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
    t.equal(tried, signed.length * 24)
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

  await t.test('the limit itself is accepted, a byte more is not', async (t) => {
    const body = Buffer.alloc(LIMIT, 'x')
    const over = Buffer.alloc(LIMIT + 1, 'x')
    const whole = await post(base, 'generic/lan', body)
    t.equal(whole.status, 202, 'with a length')
    t.ok((await payloadOf(base, whole.json<Ack>().id)).equals(body))
    const pieces = await post(base, 'generic/lan', [body.subarray(0, 9), body.subarray(9)])
    t.equal(pieces.status, 202, 'chunked')
    t.ok((await payloadOf(base, pieces.json<Ack>().id)).equals(body))
    const before = await eventIds(base)
    for (const [name, sent] of Object.entries({
      'with a length': over,
      chunked: [body, 'x'],
      'much more': Buffer.alloc(5_000_000),
      'much more, chunked': [over, over, over, over],
    })) {
      const answer = await post(base, 'generic/lan', sent)
      t.equal(answer.status, 413, name)
      t.equal(answer.headers['content-type'], 'application/problem+json', name)
      const problem = answer.json<Record<string, unknown>>()
      t.same(Object.keys(problem), PROBLEM, name)
      t.match(problem, { title: /./, status: 413, detail: /65536 bytes/, instance: PATH }, name)
    }
    const json = JSON.stringify({ x: 'x'.repeat(LIMIT - 8) })
    t.equal(json.length, LIMIT)
    t.equal((await deliver(base, 'code_host', json)).status, 202, 'signed, the limit')
    t.equal((await deliver(base, 'code_host', `${json} `)).status, 413, 'signed, a byte more')
    t.equal((await eventIds(base)).length, before.length + 1)
  })

  await t.test('a sender that asks first is refused without sending', async (t) => {
    const asking = (length: number): string =>
      head('Expect: 100-continue', `Content-Length: ${length}`)
    const over = await rawExchange(port, asking(LIMIT + 1), {
      until: (text) => text.includes('"instance"'),
    })
    t.match(over.text, /^HTTP\/1\.1 413 /)
    t.notMatch(over.text, /100 Continue/i)
    const unknown = await rawExchange(port, asking(5).replace('lan', 'nobody'), {
      until: (text) => text.includes('"instance"'),
    })
    t.match(unknown.text, /^HTTP\/1\.1 404 /)

    const outgoing = send(base + PATH, {
      method: 'POST',
      agent: false,
      headers: { Expect: '100-continue', 'Content-Length': LIMIT },
    })
    outgoing.flushHeaders()
    await once(outgoing, 'continue')
    outgoing.end(Buffer.alloc(LIMIT))
    const [response] = await once(outgoing, 'response')
    t.equal(response.statusCode, 202)
    response.resume()
  })

  await t.test('an expectation that nobody knows is no reason to answer otherwise', async (t) => {
    const text = head('Expect: the-moon', 'Content-Length: 2', 'Connection: close') + 'ok'
    const answer = await rawExchange(port, text)
    t.match(answer.text, /^HTTP\/1\.1 202 /)
    t.match(answer.text, /^x-request-id: /im)
  })

  await t.test('a slow body that completes is stored whole', async (t) => {
    const pieces = Array.from({ length: 40 }, (_, at) => `piece ${at};`)
    const body = pieces.join('')
    const fixed = head(`Content-Length: ${body.length}`, 'Connection: close')
    const chunked = head('Transfer-Encoding: chunked', 'Connection: close')
    const chunks = pieces.map((piece) => `${piece.length.toString(16)}\r\n${piece}\r\n`)
    for (const sent of [
      [fixed, ...pieces],
      [chunked, ...chunks, '0\r\n\r\n'],
      [...(fixed + body)].map(String),
    ]) {
      const { text } = await rawExchange(port, sent, { timeoutMs: 30_000 })
      t.match(text, /^HTTP\/1\.1 202 /)
      const id = Number(/"id":(\d+)/.exec(text)?.[1])
      t.equal((await payloadOf(base, id)).toString(), body)
    }
  })

  await t.test('a body that breaks off is not stored', async (t) => {
    const before = await eventIds(base)
    const cut: Record<string, (socket: Socket) => void> = {
      'connection closed': (socket) => socket.destroy(),
      'connection reset': (socket) => socket.resetAndDestroy(),
      'half closed': (socket) => socket.end(),
    }
    for (const [name, end] of Object.entries(cut)) {
      for (const framing of ['Content-Length: 1000', 'Transfer-Encoding: chunked']) {
        const known = await answered()
        const socket = connect({ host: '127.0.0.1', port })
        socket.on('error', () => undefined).resume()
        await once(socket, 'connect')
        const start = framing.startsWith('C') ? 'x'.repeat(500) : '1f4\r\nxxxx'
        await new Promise((resolve) => socket.write(head(framing) + start, resolve))
        await until(() => socket.bytesWritten > 0, 'the bytes to leave')
        // The route must have begun to read: what it does then is what counts.
        await request(`${base}/healthz`)
        end(socket)
        await until(async () => (await answered()) > known, `the end of: ${name}, ${framing}`)
        socket.destroy()
      }
    }
    t.same(await eventIds(base), before)
  })

  await t.test('methods: 405 with Allow, and HEAD as GET', async (t) => {
    for (const path of ['/webhooks/code_host', PATH, '/webhooks/nobody', `${PATH}/some-token`]) {
      for (const method of ['GET', 'HEAD', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
        const answer = await request(base + path, { method })
        t.equal(answer.status, 405, `${method} ${path}`)
        t.equal(answer.headers.allow, 'POST', `${method} ${path}`)
        if (method === 'HEAD') t.equal(answer.body.length, 0)
        else t.same(Object.keys(answer.json<object>()), PROBLEM)
        t.notMatch(answer.text, /some-token/)
      }
    }
    const stream = await request(`${base}/events`, { method: 'HEAD' })
    t.match([stream.status, stream.headers['content-type']], [200, /^text\/event-stream/])
  })

  await t.test('after all this the server is well and said nothing bad', async (t) => {
    t.match((await request(`${base}/healthz`)).json(), { status: 'ok' })
    t.equal((await deliver(base, 'chat', '{"after":true}')).status, 202)
    const logs = server.logs().join('\n')
    t.notMatch(logs, /handler failed|unhandled|"level":"error"/i)
    t.notMatch(logs, /some-token/)
  })

  await t.test('the column holds the same bytes', async (t) => {
    await server.stop()
    const rows = await backend.query(
      env,
      'select id, payload, length(payload) as payload_size from hooks.events',
    )
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
