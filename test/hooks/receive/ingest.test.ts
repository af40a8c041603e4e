import { once } from 'node:events'
import { request as send } from 'node:http'
import { connect, type Socket } from 'node:net'
import { t, type Test } from 'tap'
import { eachBackend, postgres } from '../../helpers/backends.ts'
import {
  SIGNED,
  addProvider,
  deliver,
  eventIds,
  payloadOf,
  post,
  postForm,
  shown,
  startHooks,
  store,
  type Ack,
  type Fields,
} from '../../helpers/hooks.ts'
import { countAnswers, rawExchange, request, type Response } from '../../helpers/http.ts'
import { expectStatus } from '../../helpers/refusals.ts'
import { replay, startReceiver } from '../../helpers/replays.ts'
import { startServer } from '../../helpers/server.ts'
import { openStream, type EventStream } from '../../helpers/sse.ts'
import { until } from '../../helpers/until.ts'

const LIMIT = 65_536
const times = Array.from({ length: 30 }, (_, at) => at)

/** Bodies that a text-minded receiver would change. */
const AWKWARD = [
  Buffer.from('{"log":"\\u001B[31mred\\u001B[0m \\u000A"}'),
  Buffer.from('{\r\n"b":1\r\n}\r\n'),
  Buffer.from(' \t{"c" : 1 } \n\n'),
  Buffer.from('{"n":12345678901234567890.10,"e":1E400,"z":-0.0,"d":1,"d":2}'),
  Buffer.from('{"e":"\\/\\ud83d"}'),
  Buffer.from([0x7b, 0x22, 0x66, 0x22, 0x3a, 0x22, 0xff, 0xfe, 0xc3, 0x22, 0x7d]),
]

/** What a generic sender may send that is no text at all. */
const RAW = [
  Buffer.from(Array.from({ length: 256 }, (_, byte) => byte)),
  Buffer.alloc(0),
  Buffer.alloc(1_000),
  Buffer.from([0xef, 0xbb, 0xbf, 0x7b, 0x7d]),
  Buffer.from('text', 'utf16le'),
  Buffer.from('\\x00\\000\\\\'),
]

/** A stream that has its place: its first status says so, and it misses nothing from then on. */
async function follow(base: string) {
  const stream = await openStream(t, `${base}/events`)
  await stream.until(({ event }) => event === 'status', 'the first status')
  return stream
}

/** What the stream has told of one event once a later event has come by. */
async function toldOf(stream: EventStream, id: number, later: number) {
  await stream.until((event) => event.id === String(later), `event ${later}`)
  return stream.events.filter((event) => event.id === String(id)).length
}

/** Delivers, and gives the id of the event. */
async function accepted(...delivery: Parameters<typeof deliver>) {
  return (await expectStatus(202, deliver(...delivery))).json<Ack>().id
}

/** All have the same acknowledgement, whose id this gives. */
function oneAck(t: Test, answers: readonly Response[]) {
  t.same(new Set(answers.map(({ status }) => status)), new Set([202]))
  t.equal(new Set(answers.map(({ text }) => text)).size, 1, 'one ack for all')
  return answers[0]?.json<Ack>().id ?? 0
}

const receiver = await startReceiver(t)
const { base, server, env } = await startHooks(t, postgres, {
  HOOKS_REPLAY_TARGETS: `127.0.0.1:${receiver.port}`,
  HOOKS_MAX_BODY: '64KiB',
})
const port = Number(new URL(base).port)
await addProvider(base, 'lan', { open: true })
const stream = await follow(base)

await eachBackend(t, 'deliveries from receipt to removal', async (t, backend) => {
  const { base } = await startHooks(t, backend)
  await addProvider(base, 'lan', { open: true })
  const stream = await follow(base)

  await t.test('what is accepted is listed, and comes back byte for byte', async (t) => {
    const kept: { id: number; body: Buffer }[] = []
    for (const body of AWKWARD) {
      for (const provider of SIGNED) kept.push({ id: await accepted(base, provider, body), body })
    }
    for (const body of RAW) kept.push({ id: await store(base, 'lan', body), body })
    t.same(await eventIds(base), kept.map(({ id }) => id).toReversed())
    for (const { id, body } of kept) {
      t.ok(body.equals(await payloadOf(base, id)), `event ${id}`)
      await stream.until((event) => event.id === String(id), `event ${id} on the stream`)
    }
  })

  await t.test('thirty at once with one id are one event', async (t) => {
    const before = await eventIds(base)
    const headers = { 'X-GitHub-Event': 'push', 'X-GitHub-Delivery': 'one-of-thirty' }
    const post = (at: number) => deliver(base, 'code_host', `{"at":${at}}`, headers)
    const id = oneAck(t, await Promise.all(times.map(post)))
    t.same(await eventIds(base), [id, ...before])
    t.match((await shown(base, id)).facts, { Attempts: /^30 / })
  })

  await t.test('all but the newest are removed', async (t) => {
    const [last, before] = await eventIds(base)
    await expectStatus(200, postForm(base, '/settings', { retention_max_rows: '2' }))
    await until(async () => (await eventIds(base)).length === 2, 'two to be left')
    t.same(await eventIds(base), [last, before])
  })
})

await t.test('delivery ids', async (t) => {
  await t.test('a repeat later, also with another body, changes nothing', async (t) => {
    const later = () => store(base, 'lan', 'later')
    const headers = { 'X-GitHub-Event': 'push', 'X-GitHub-Delivery': 'repeated' }
    const first = await deliver(base, 'code_host', '{"first":true}', headers)
    const { id } = first.json<Ack>()
    t.equal(await toldOf(stream, id, await later()), 1)
    const other = { ...headers, 'X-GitHub-Event': 'ping' }
    const again = await deliver(base, 'code_host', '{"second":true}', other)
    t.same([again.status, again.json()], [202, first.json()], "the first event's ack")
    t.match((await shown(base, id)).facts, { 'Event type': 'push', Attempts: /^2 / })
    t.equal((await payloadOf(base, id)).toString(), '{"first":true}')
    t.equal(await toldOf(stream, id, await later()), 1, 'still told once')
  })

  await t.test('one id of several providers is an event of each', async (t) => {
    const body = '{"id":"shared","event_id":"shared"}'
    const headers = { 'X-GitHub-Delivery': 'shared', 'Webhook-Id': 'shared' }
    const ids = new Set([await store(base, 'lan', body, headers)])
    for (const provider of SIGNED) ids.add(await accepted(base, provider, body, headers))
    t.equal(ids.size, 4)
  })

  await t.test('without an id the body stands for it, at signed receivers', async (t) => {
    const [one, two, other] = await Promise.all(
      [1, 1, 2].map((n) => accepted(base, 'code_host', `{"n":${n}}`)),
    )
    t.equal(one, two)
    t.not(other, one)
  })

  await t.test('an event has the type that its delivery claims', async (t) => {
    const body = '{"ref":"refs/heads/main"}'
    const claim = (id: string, type: Fields) =>
      accepted(base, 'code_host', body, { ...type, 'X-GitHub-Delivery': id })
    const first = await claim('first', { 'X-GitHub-Event': 'push' })
    const again = await claim('again', { 'X-GitHub-Event': 'deployment' })
    const untyped = await claim('untyped', {})
    const told = await stream.until(({ id }) => id === String(again))
    t.match(JSON.parse(told.data), { verified: true, event_type: 'deployment' })
    for (const [id, type] of [
      [first, 'push (type not signed)'],
      [again, 'deployment (type not signed)'],
      [untyped, 'none'],
    ] as const) {
      t.equal((await shown(base, id)).facts['Event type'], type)
      const { text } = await request(`${base}/log/${id}`)
      const marked = /same, byte for byte.*event \d+<\/a>, which came as <bdi>push</s.test(text)
      t.equal(marked, id !== first, 'the first event with this body stands beside it')
    }
    for (const id of [first, again]) await replay(base, id, receiver.url)
    const types = receiver.received.map(({ headers }) => headers['x-github-event'])
    t.same(types, ['push', 'deployment'], 'it is sent on under that type')
  })

  await t.test('two servers on one database keep a delivery once', async (t) => {
    const other = await startServer(t, { services: ['hooks'], env })
    const there = await follow(other.hooks)
    const headers = { 'X-GitHub-Delivery': 'of-two-servers' }
    const bases = [base, other.hooks]
    const post = (at: number) => deliver(bases[at % 2] ?? '', 'code_host', `{"at":${at}}`, headers)
    const id = oneAck(t, await Promise.all(times.map(post)))
    t.match((await shown(base, id)).facts, { Attempts: /^30 / })
    const later = await accepted(other.hooks, 'chat', '{"later":2}')
    t.equal(await toldOf(there, id, later), 1, 'told once')
    await other.stop()
  })
})

await t.test('bodies as they come over a connection', async (t) => {
  const path = '/webhooks/generic/lan'
  const head = (...lines: readonly string[]) =>
    [`POST ${path} HTTP/1.1`, 'Host: x', ...lines, '', ''].join('\r\n')

  await t.test('the limit itself is accepted, a byte more is not', async (t) => {
    const body = Buffer.alloc(LIMIT, 'x')
    const over = Buffer.alloc(LIMIT + 1, 'x')
    for (const whole of [body, [body.subarray(0, 9), body.subarray(9)]]) {
      const id = await store(base, 'lan', whole)
      t.ok((await payloadOf(base, id)).equals(body), 'with a length, and chunked')
    }
    const before = await eventIds(base)
    for (const sent of [over, [body, 'x'], Buffer.alloc(5_000_000), [over, over, over, over]]) {
      const answer = await post(base, 'generic/lan', sent)
      t.match(answer.json(), { status: 413, detail: /65536 bytes/, instance: path })
    }
    t.same(await eventIds(base), before)
  })

  await t.test('a sender that asks first is refused without sending', async (t) => {
    const asking = (length: number) => head('Expect: 100-continue', `Content-Length: ${length}`)
    for (const [text, status] of [
      [asking(LIMIT + 1), 413],
      [asking(5).replace('lan', 'nobody'), 404],
    ] as const) {
      const until = (text: string) => text.includes('"instance"')
      const refused = await rawExchange(port, text, { until })
      t.match(refused.text, new RegExp(`^HTTP/1\\.1 ${status} `))
      t.notMatch(refused.text, /100 Continue/i)
    }
    const headers = { Expect: '100-continue', 'Content-Length': LIMIT }
    const outgoing = send(base + path, { method: 'POST', agent: false, headers })
    outgoing.flushHeaders()
    await once(outgoing, 'continue')
    outgoing.end(Buffer.alloc(LIMIT))
    const [response] = await once(outgoing, 'response')
    t.equal(response.statusCode, 202)
    response.resume()
  })

  await t.test('a body that breaks off is not stored', async (t) => {
    const route = '/webhooks/generic/:name'
    const answered = async () =>
      (await countAnswers(base, route, 499)) + (await countAnswers(base, route, 400))
    const before = await eventIds(base)
    const ends = {
      closed: (socket: Socket) => socket.destroy(),
      reset: (socket: Socket) => socket.resetAndDestroy(),
      'half closed': (socket: Socket) => socket.end(),
    }
    for (const [name, end] of Object.entries(ends)) {
      for (const [framing, start] of [
        ['Content-Length: 1000', 'x'.repeat(500)],
        ['Transfer-Encoding: chunked', '1f4\r\nxxxx'],
      ] as const) {
        const known = await answered()
        const socket = connect({ host: '127.0.0.1', port })
        socket.on('error', () => undefined).resume()
        await once(socket, 'connect')
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
    t.notMatch(server.logs().join('\n'), /handler failed|unhandled|"level":"error"/i)
  })
})
