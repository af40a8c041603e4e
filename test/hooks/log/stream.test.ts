import { t } from 'tap'
import type { Test } from 'tap'
import { checkStreamClients } from '../../fixtures/stream-clients.ts'
import { backends } from '../../helpers/backends.ts'
import { createSender, sendAll } from '../../helpers/deliveries.ts'
import type { Acked } from '../../helpers/deliveries.ts'
import { request } from '../../helpers/http.ts'
import { startServer } from '../../helpers/server.ts'
import { openStream } from '../../helpers/sse.ts'
import type { EventStream, StreamEvent, StreamOptions } from '../../helpers/sse.ts'
import { until } from '../../helpers/until.ts'

type Status = {
  connection: string
  generated_at: string
  providers: readonly Readonly<Record<string, unknown>>[]
  db: string
  broker: string
}

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

const [embedded, postgres] = backends
// test/long/sizes.test.ts has 200 clients and 2,000 events.
const LOAD = { clients: 12, events: 400, portion: 25 }

const sender = createSender()
const env = { ...(await postgres.env(t)), ...sender.env }
const { hooks: base } = await startServer(t, { services: ['hooks'], env })

await t.test('live stream', async (t) => {
  const store = async (count: number): Promise<readonly Acked[]> =>
    sendAll(t, [base], await sender.deliveries(count), 1)
  const open = (inner: Test, options?: StreamOptions, search = ''): Promise<EventStream> =>
    openStream(inner, `${base}/events${search}`, options)
  const form = (path: string, body: string): Promise<{ status: number }> =>
    request(base + path, {
      method: 'POST',
      headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
      body,
    })

  await t.test('head, retry and status come at once', async (t) => {
    const stream = await open(t)
    t.equal(stream.status, 200)
    t.match(stream.headers, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store, no-transform',
      'x-accel-buffering': 'no',
      'x-content-type-options': 'nosniff',
      'x-request-id': /./,
    })
    const first = await stream.until(isStatus, 'a status')
    t.equal(stream.retry, 3000)
    t.equal(first.id, undefined, 'a status moves nobody')
    t.equal(stream.events[0], first)
    const status = statusOf(first)
    t.match(status, { connection: 'idle', generated_at: TIME, db: 'ok', broker: 'disabled' })
    t.equal(status.providers.length, 3)
    t.match(status.providers, [
      provider('chat', { enabled: false }),
      provider('code_host', {}),
      provider('payments', { enabled: false }),
    ])
  })

  await t.test('HEAD ends with the head of the stream', async (t) => {
    const answer = await request(`${base}/events`, { method: 'HEAD' })
    t.equal(answer.headers['content-type'], 'text/event-stream; charset=utf-8')
    t.equal(answer.body.length, 0)
  })

  await t.test('a stream of one provider and type has no other event', async (t) => {
    const lan = await openStream(t, `${base}/events?provider=generic:lan&event_type=wanted`)
    const stream = await openStream(t, `${base}/events?provider=code_host&event_type=WANT*`)
    for (const { until: wait } of [lan, stream]) await wait(isStatus)
    for (const type of ['other', 'wanted', 'other', 'wanted']) {
      await sendAll(t, [base], await sender.deliveries(1, { type }), 1)
    }
    await until(() => idsOf(stream).length === 2, 'the wanted ones')
    const wanted = stream.events.filter(({ event }) => event === 'event-received')
    t.ok(wanted.every(({ data }) => data.includes('"wanted"')))
    t.same(idsOf(lan), [], 'none of another provider')
    const resumed = await open(t, { lastEventId: '0' }, '?event_type=wanted')
    await resumed.until(({ id }) => id === stream.lastEventId)
    t.same(idsOf(resumed), idsOf(stream))
  })

  await t.test('a toggle is told to everybody', async (t) => {
    const streams = [await open(t), await open(t)]
    for (const stream of streams) await stream.until(saysOf('code_host', { enabled: true }))
    t.equal((await form('/providers/code_host/enabled', 'enabled=false')).status, 200)
    for (const stream of streams) await stream.until(saysOf('code_host', { enabled: false }))
    t.equal((await form('/providers/code_host/enabled', 'enabled=true')).status, 200)
  })

  await t.test('resume by header, by query, and from now on', async (t) => {
    const acked = await store(5)
    const ids = acked.map(({ id }) => String(id))
    const [first = '', last = ''] = [ids[0], ids.at(-1)]
    const rest = ids.slice(1)
    const resumed = [
      { name: 'query', stream: await open(t, {}, `?last_event_id=${first}`), missed: rest },
      {
        name: 'the header is newer than the query',
        stream: await open(t, { lastEventId: first }, '?last_event_id=1'),
        missed: rest,
      },
      { name: 'up to date', stream: await open(t, { lastEventId: last }), missed: [] },
      {
        name: 'a future id',
        stream: await open(t, { lastEventId: String(Number(last) + 1_000) }),
        missed: [],
      },
    ]
    for (const lastEventId of ['abc', '-1', '', '9'.repeat(400)]) {
      const stream = await open(t, { lastEventId })
      resumed.push({ name: `garbage "${lastEventId.slice(0, 9)}"`, stream, missed: [] })
    }
    const inQuery = await open(t, {}, '?last_event_id=abc')
    resumed.push({ name: 'garbage in the query', stream: inQuery, missed: [] })
    for (const { stream } of resumed) await stream.until(isStatus)
    // A client without a position is at the newest event once its status has come, or soon after.
    for (const { stream, missed } of resumed)
      await until(() => idsOf(stream).length >= missed.length, 'the replay')
    const [live] = await store(1)
    for (const { name, stream, missed } of resumed) {
      t.equal(stream.status, 200, name)
      await stream.until(({ id }) => id === String(live?.id), `the live event (${name})`)
      t.same(idsOf(stream), [...missed, String(live?.id)], name)
      const gaps = stream.events.filter(({ event }) => event === 'gap')
      const ahead = { requested: Number(last) + 1_000, oldest: Number(last) + 1, skipped: 0 }
      t.same(
        gaps.map(({ data }) => JSON.parse(data)),
        name === 'a future id' ? [ahead] : [],
        name,
      )
    }
  })
})

await t.test('comments, statuses and clients that come and go', async (t) => {
  // The comments and the regular statuses are 15 s apart: the load on other servers fills that time.
  const stream = await openStream(t, `${base}/events`)
  await stream.until(isStatus)
  const before = stream.events.length

  for (const [name, backend, servers] of [
    ['embedded', embedded, 1],
    ['postgres, two servers', postgres, 2],
  ] as const) {
    await t.test(`each client sees each event once and in order (${name})`, (t) =>
      checkStreamClients(t, backend, { ...LOAD, servers }),
    )
  }

  await until(() => stream.comments.length > 0, 'a keep-alive comment', 20_000)
  t.match(stream.comments[0], /keep-alive/)
  await until(() => stream.events.slice(before).some(isStatus), 'the regular status')
})

function provider(name: string, known: Record<string, unknown>): Record<string, unknown> {
  const fresh = { trust_mode: 'signed', enabled: true, recent_count: 0, last_event_at: null }
  return { name, ...fresh, ...known }
}

function isStatus({ event }: StreamEvent): boolean {
  return event === 'status'
}

function statusOf({ data }: StreamEvent): Status {
  return JSON.parse(data)
}

/** A status that says these things of a provider. */
function saysOf(
  name: string,
  expected: Readonly<Record<string, unknown>>,
): (event: StreamEvent) => boolean {
  return (event) => {
    if (!isStatus(event)) return false
    const found = statusOf(event).providers.find((candidate) => candidate['name'] === name)
    return Object.entries(expected).every(([field, value]) => found?.[field] === value)
  }
}

function idsOf(stream: EventStream): readonly string[] {
  return stream.events
    .filter(({ event }) => event === 'event-received')
    .map(({ id }) => id ?? 'none')
}
