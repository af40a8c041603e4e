import { t } from 'tap'
import type { Test } from 'tap'
import { openPeer } from '../fixtures/forward-setup.ts'
import type { ForwardedEvent } from '../fixtures/forward-setup.ts'
import { eachBackend, onPostgres } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import type { Response } from '../helpers/http.ts'
import type { Owner } from '../helpers/owner.ts'
import { replay, startReceiver } from '../helpers/replays.ts'
import { refuseAll } from '../helpers/refusals.ts'
import { addSigned, secretKey, sendStandard } from '../helpers/senders.ts'
import { startServer } from '../helpers/server.ts'
import {
  SIGNED,
  addProvider,
  deliver,
  eventIds,
  payloadOf,
  post,
  postForm,
  refusals,
  shown,
  signatureHeaders,
  startHooks,
} from '../helpers/hooks.ts'
import type { Ack } from '../helpers/hooks.ts'
import type { EventStream } from '../helpers/sse.ts'
import { openStream } from '../helpers/sse.ts'
import { until } from '../helpers/until.ts'

const LIMIT = 4_096
const TIMES = 30
const times = Array.from({ length: TIMES }, (_, at) => at)

/** Bodies that a text-minded receiver would change. */
const AWKWARD: Readonly<Record<string, Buffer>> = {
  'escaped control characters': Buffer.from('{"log":"\\u001B[31mred\\u001B[0m \\u000A"}'),
  'a trailing newline': Buffer.from('{"a":1}\n'),
  CRLF: Buffer.from('{\r\n"b":1\r\n}\r\n'),
  'white space around': Buffer.from(' \t{"c" : 1 } \n\n'),
  'numbers beyond doubles': Buffer.from('{"n":12345678901234567890.10,"e":1E400,"z":-0.0}'),
  'a member twice': Buffer.from('{"d":1,"d":2}'),
  'escaped slashes and halves': Buffer.from('{"e":"\\/\\ud83d"}'),
  'no UTF-8': Buffer.from([0x7b, 0x22, 0x66, 0x22, 0x3a, 0x22, 0xff, 0xfe, 0xc3, 0x22, 0x7d]),
}

/** What a generic sender may send that is no text at all. */
const RAW: Readonly<Record<string, Buffer>> = {
  'every byte': Buffer.from(Array.from({ length: 256 }, (_, byte) => byte)),
  'an empty body': Buffer.alloc(0),
  zeroes: Buffer.alloc(1_000),
  'a UTF-8 mark': Buffer.from([0xef, 0xbb, 0xbf, 0x7b, 0x7d]),
  'UTF-16': Buffer.from('text', 'utf16le'),
  'a backslash and hex': Buffer.from('\\x00\\000\\\\'),
}

/** A stream that has its place: its first status says so, and it misses nothing from then on. */
async function follow(t: Owner, base: string): Promise<EventStream> {
  const stream = await openStream(t, `${base}/events`)
  await stream.until(({ event }) => event === 'status', 'the first status')
  return stream
}

/** What the stream has told of one event once a later event has come by. */
async function toldOf(stream: EventStream, id: number, later: number): Promise<number> {
  await stream.until((event) => event.id === String(later), `event ${later}`)
  return stream.events.filter((event) => event.id === String(id)).length
}

function attempts(facts: Readonly<Record<string, string>>): number {
  return Number.parseInt(facts['Attempts'] ?? '', 10)
}

await eachBackend(t, 'deliveries from receipt to removal', async (t: Test, backend) => {
  const { base } = await startHooks(t, backend, {
    GATEHOUSE_SECRET_KEY: secretKey(),
    HOOKS_MAX_BODY: String(LIMIT),
  })
  const token = await addProvider(base, 'ci')
  await addProvider(base, 'lan', { open: true })
  const idle = await addProvider(base, 'idle', { enabled: false })
  const signing = await addSigned(base, 'shop')
  const bearer = { Authorization: `Bearer ${token}` }
  const stream = await follow(t, base)

  await t.test('what is refused is listed by its reason, and not stored', async (t: Test) => {
    const long = 'x'.repeat(LIMIT + 1)
    const wrong = signatureHeaders('code_host', '{}', { secret: 'another' })
    const stale = signatureHeaders('payments', '{}', { at: 1_700_000_000 })
    const sent = (path: string, body: string, headers = {}) => ({
      call: `POST /webhooks/${path}`,
      ...{ body, headers },
    })
    const list = sent('code_host', '[1]', signatureHeaders('code_host', '[1]'))
    await refuseAll(t, { service: 'hooks', base, state: () => eventIds(base) }, [
      [sent('nobody', '{}'), 404, undefined, /No signed provider/],
      [sent('generic/nobody', '{}'), 404],
      [sent('generic/idle', '{}', { 'X-Webhook-Token': idle }), 403, undefined, /disabled/],
      [sent('generic/lan', long), 413, undefined, /limit of 4096 bytes/],
      [sent('generic/ci', '{}'), 403, undefined, /missing or wrong/],
      [sent('generic/shop', '{}', bearer), 403, undefined, /signature is missing, malformed/],
      [sent('code_host', '{}', wrong), 401, undefined, /signature/],
      [sent('payments', '{}', stale), 401, undefined, /signature/],
      [sent('chat', '{}'), 400, undefined, /X-Chat-Request-Timestamp/],
      [list, 400, undefined, /JSON object/],
    ])
    const listed = await until(async () => {
      const rows = await refusals(base)
      return rows.length >= 8 && rows.toReversed()
    }, 'the refusals to be listed')
    t.match(
      listed.map(({ provider, status, reason }) => `${provider} ${status} ${reason}`),
      [
        'unknown 404 unknown path: POST /webhooks/nobody',
        'unknown 404 unknown path: POST /webhooks/generic/nobody',
        'generic:idle 403 disabled',
        'generic:lan 413 body too large',
        'generic:ci 403 token missing',
        'generic:shop 403 signature missing',
        'code_host 401 wrong secret or altered body',
        /^payments 401 stale by \d+ s$/,
      ],
    )
  })

  await t.test('what is accepted is listed, and comes back byte for byte', async (t) => {
    const kept: { id: number; body: Buffer }[] = []
    const keep = (answer: Response, body: Buffer, expected: Partial<Ack>): void => {
      t.equal(answer.status, 202, answer.text)
      const ack = answer.json<Ack>()
      t.match(ack, expected)
      kept.push({ id: ack.id, body })
    }
    const verified = { trust_mode: 'signed', verified: true }
    for (const body of Object.values(AWKWARD)) {
      for (const provider of SIGNED) {
        keep(await deliver(base, provider, body), body, { provider, ...verified })
      }
    }
    for (const body of Object.values(RAW)) {
      const open = { provider: 'generic:lan', trust_mode: 'open', verified: false }
      keep(await post(base, 'generic/lan', body), body, open)
      const byToken = { provider: 'generic:ci', trust_mode: 'token', verified: false }
      keep(await post(base, 'generic/ci', body, bearer), body, byToken)
      const signed = { provider: 'generic:shop', ...verified }
      keep(await sendStandard(base, 'shop', signing, body), body, signed)
    }
    t.same(await eventIds(base), kept.map(({ id }) => id).toReversed())
    for (const { id, body } of kept) {
      t.ok(body.equals(await payloadOf(base, id)), `event ${id}`)
      await stream.until((event) => event.id === String(id), `event ${id} on the stream`)
    }
  })

  await t.test('thirty at once with one id are one event', async (t) => {
    const before = await eventIds(base)
    const headers = { 'X-GitHub-Event': 'push', 'X-GitHub-Delivery': 'one-of-thirty' }
    const answers = await Promise.all(
      times.map((at) => deliver(base, 'code_host', `{"at":${at}}`, headers)),
    )
    t.same(new Set(answers.map(({ status }) => status)), new Set([202]))
    t.equal(new Set(answers.map(({ text }) => text)).size, 1, 'one ack for all')
    const ack = answers[0]?.json<Ack>() ?? { id: 0 }
    t.same(await eventIds(base), [ack.id, ...before])
    t.equal(attempts((await shown(base, ack.id)).facts), TIMES)
    const later = (await post(base, 'generic/lan', 'later')).json<Ack>().id
    t.equal(await toldOf(stream, ack.id, later), 1, 'told once')
  })

  await t.test('many deliveries, each three times at once: none lost, none doubled', async (t) => {
    const before = (await eventIds(base)).length
    const ids = await Promise.all(
      Array.from({ length: 60 }, async (_, at) => {
        const headers = { 'X-GitHub-Delivery': `mixed-${at % 20}` }
        const sent = await deliver(base, 'code_host', `{"mixed":${at % 20}}`, headers)
        return `${at % 20}:${sent.json<Ack>().id}`
      }),
    )
    t.equal(new Set(ids).size, 20, 'one event for each id')
    t.equal((await eventIds(base)).length, before + 20)
  })

  await t.test('all but the newest are removed', async (t) => {
    const [last = 0, before = 0, ...older] = await eventIds(base)
    t.equal((await postForm(base, '/settings', { retention_max_rows: '2' })).status, 200)
    await until(async () => (await eventIds(base)).length === 2, 'two to be left')
    t.same(await eventIds(base), [last, before])
    t.equal((await request(`${base}/log/${older[0]}/payload`)).status, 404)
    const resumed = await openStream(t, `${base}/events`, { lastEventId: '1' })
    const gap = await resumed.until(({ event }) => event === 'gap', 'the gap')
    t.same(JSON.parse(gap.data), { requested: 1, oldest: before, skipped: before - 2 })
    const healthy = { status: 'ok', db: 'ok', broker: 'disabled', database: 'ok' }
    t.match((await request(`${base}/healthz`)).json(), healthy)
  })
})

await onPostgres(t, 'delivery ids', async (t: Test, backend) => {
  const receiver = await startReceiver(t, (_, response) => void response.writeHead(204).end())
  const { base, env } = await startHooks(t, backend, {
    HOOKS_REPLAY_TARGETS: `127.0.0.1:${receiver.port}`,
  })
  await addProvider(base, 'lan', { open: true })
  const stream = await follow(t, base)
  const marker = async (): Promise<number> =>
    (await post(base, 'generic/lan', 'later')).json<Ack>().id

  await t.test('a repeat later, also with another body, changes nothing', async (t) => {
    const headers = { 'X-GitHub-Event': 'push', 'X-GitHub-Delivery': 'repeated' }
    const first = await deliver(base, 'code_host', '{"first":true}', headers)
    const { id } = first.json<Ack>()
    t.equal(await toldOf(stream, id, await marker()), 1)
    for (const body of ['{"first":true}', '{"second":true}']) {
      const again = await deliver(base, 'code_host', body, {
        ...headers,
        'X-GitHub-Event': 'ping',
      })
      t.equal(again.status, 202)
      t.same(again.json(), first.json(), "the first event's ack")
    }
    const { facts } = await shown(base, id)
    t.match(facts, { 'Event type': 'push', Attempts: /^3 / })
    t.equal((await payloadOf(base, id)).toString(), '{"first":true}')
    t.equal(await toldOf(stream, id, await marker()), 1, 'still told once')
  })

  await t.test('one id of several providers is an event of each', async (t) => {
    const body = '{"id":"shared","event_id":"shared"}'
    const headers = { 'X-GitHub-Delivery': 'shared', 'Webhook-Id': 'shared' }
    const sent = [
      await deliver(base, 'code_host', body, headers),
      await deliver(base, 'payments', body, headers),
      await deliver(base, 'chat', body, headers),
      await post(base, 'generic/lan', body, headers),
    ]
    const ids = new Set(sent.map((answer) => answer.json<Ack>().id))
    t.equal(ids.size, sent.length)
    for (const id of ids) t.equal((await shown(base, id)).facts['Attempts'], '1')
  })

  await t.test('without an id the body stands for it, at signed receivers', async (t) => {
    const same = [
      await deliver(base, 'code_host', '{"n":1}'),
      await deliver(base, 'code_host', '{"n":1}'),
    ]
    const other = await deliver(base, 'code_host', '{"n":2}')
    const [one, two] = same.map((answer) => answer.json<Ack>().id)
    t.equal(one, two)
    t.not(other.json<Ack>().id, one)
  })

  await t.test('the same signed body under another id is accepted and marked', async (t) => {
    const sent = []
    for (const id of ['original', 'replayed']) {
      const headers = { 'X-GitHub-Delivery': id }
      sent.push((await deliver(base, 'code_host', '{"replay":1}', headers)).json<Ack>().id)
    }
    const [original = 0, replayed = 0] = sent
    t.not(original, replayed)
    t.notMatch((await request(`${base}/log/${original}`)).text, /same, byte for byte/)
    t.match(
      (await request(`${base}/log/${replayed}`)).text,
      new RegExp(`byte.*href="/log/${original}"`, 's'),
    )
  })

  await t.test('an event has the type that its delivery claims', async (t) => {
    const body = '{"ref":"refs/heads/main"}'
    const send = async (type: string | null, id: string): Promise<number> => {
      const headers = { ...(type !== null && { 'X-GitHub-Event': type }), 'X-GitHub-Delivery': id }
      return (await deliver(base, 'code_host', body, headers)).json<Ack>().id
    }
    const first = await send('push', 'first')
    const again = await send('deployment', 'again')
    const untyped = await send(null, 'untyped')
    const told = await stream.until(({ id }) => id === String(again))
    t.match(JSON.parse(told.data), { verified: true, event_type: 'deployment' })
    const types = await Promise.all(
      [first, again, untyped].map(async (id) => (await shown(base, id)).facts['Event type']),
    )
    t.same(types, ['push (type not signed)', 'deployment (type not signed)', 'none'])
    const page = async (id: number) => (await request(`${base}/log/${id}`)).text
    t.match(await page(again), /event \d+<\/a>, which came as <bdi>push</)
    t.match(await page(untyped), /event \d+<\/a>, which came as <bdi>push</)
    t.notMatch(await page(first), 'which came as')

    await t.test('it is sent on under that type', async (t) => {
      for (const id of [first, again]) await replay(base, id, receiver.url)
      const sent = receiver.received.map(({ headers }) => headers['x-github-event'])
      t.same(sent, ['push', 'deployment'])
      const peer = await openPeer(t, base, {
        name: 'types',
        target: receiver.url,
        since: String(again),
      })
      t.match(await peer.next(), { type: 'ready' })
      peer.send({ type: 'next' })
      const { event_type, headers } = await peer.next<ForwardedEvent>()
      t.equal(event_type, 'deployment')
      t.equal(headers?.['x-github-event'], 'deployment')
      peer.close()
    })
  })

  await t.test('two servers on one database keep a delivery once', async (t) => {
    const other = (await startServer(t, { services: ['hooks'], env })).hooks
    const before = (await eventIds(base)).length
    const streams = [stream, await follow(t, other)]
    for (const round of [1, 2]) {
      const headers = { 'X-GitHub-Delivery': `shared-${round}` }
      const send = (at: number) =>
        deliver(at % 2 === 0 ? base : other, 'code_host', `{"at":${at}}`, headers)
      const answers = await Promise.all(times.map(send))
      t.same(new Set(answers.map(({ status }) => status)), new Set([202]))
      t.equal(new Set(answers.map(({ text }) => text)).size, 1, 'one ack for all')
      const { id } = answers[0]?.json<Ack>() ?? { id: 0 }
      for (const at of [base, other]) t.equal(attempts((await shown(at, id)).facts), TIMES)
      const later = (await deliver(other, 'chat', `{"round":${round}}`)).json<Ack>().id
      for (const each of streams) t.equal(await toldOf(each, id, later), 1, 'told once')
    }
    t.equal((await eventIds(base)).length, before + 4)
  })
})
