import { t, type Test } from 'tap'
import { checkStreamClients } from '../../fixtures/stream-clients.ts'
import { INSTANT } from '../../helpers/api.ts'
import { embedded, postgres } from '../../helpers/backends.ts'
import { createSender, sendAll } from '../../helpers/deliveries.ts'
import { enable } from '../../helpers/hooks.ts'
import { request } from '../../helpers/http.ts'
import { startServer } from '../../helpers/server.ts'
import {
  openStream,
  type EventStream,
  type StreamEvent,
  type StreamOptions,
} from '../../helpers/sse.ts'
import { until } from '../../helpers/until.ts'

type Status = { providers: readonly Readonly<Record<string, unknown>>[] }

// test/long/sizes.test.ts has 200 clients and 2,000 events.
const LOAD = { clients: 12, events: 400, portion: 25 }

const sender = createSender()
const env = { ...(await postgres.env(t)), ...sender.env }
const { hooks: base } = await startServer(t, { services: ['hooks'], env })

await t.test('live stream', async (t) => {
  const store = async (count: number) => sendAll(t, [base], await sender.deliveries(count), 1)
  const open = (inner: Test, options?: StreamOptions, search = '') =>
    openStream(inner, `${base}/events${search}`, options)

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
    const known = { trust_mode: 'signed', recent_count: 0, last_event_at: null }
    const status = statusOf(first)
    t.match(status, { connection: 'idle', generated_at: INSTANT, db: 'ok', broker: 'disabled' })
    t.equal(status.providers.length, 3)
    t.match(status.providers, [
      { name: 'chat', enabled: false, ...known },
      { name: 'code_host', enabled: true, ...known },
      { name: 'payments', enabled: false, ...known },
    ])
  })

  await t.test('HEAD ends with the head of the stream', async (t) => {
    const answer = await request(`${base}/events`, { method: 'HEAD' })
    t.equal(answer.headers['content-type'], 'text/event-stream; charset=utf-8')
    t.equal(answer.body.length, 0)
  })

  await t.test('a stream of one provider and type has no other event', async (t) => {
    const lan = await open(t, {}, '?provider=generic:lan&event_type=wanted')
    const stream = await open(t, {}, '?provider=code_host&event_type=WANT*')
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
    for (const stream of streams) await stream.until(saysEnabled(true))
    await enable(base, 'code_host', false)
    for (const stream of streams) await stream.until(saysEnabled(false))
    await enable(base, 'code_host', true)
  })

  await t.test('resume by header, by query, and from now on', async (t) => {
    const ids = (await store(5)).map(({ id }) => String(id))
    const [first = '', ...rest] = ids
    const last = Number(ids.at(-1))
    const resumed = [
      { name: 'query', stream: await open(t, {}, `?last_event_id=${first}`), missed: rest },
      {
        name: 'the header is newer than the query',
        stream: await open(t, { lastEventId: first }, '?last_event_id=1'),
        missed: rest,
      },
      {
        name: 'garbage in the query',
        stream: await open(t, {}, '?last_event_id=abc'),
        missed: [],
      },
    ]
    for (const [name, lastEventId] of [
      ['up to date', String(last)],
      ['a future id', String(last + 1_000)],
      ['no number', 'abc'],
      ['a negative one', '-1'],
      ['nothing', ''],
      ['too long', '9'.repeat(400)],
    ] as const) {
      resumed.push({ name, stream: await open(t, { lastEventId }), missed: [] })
    }
    for (const { stream } of resumed) await stream.until(isStatus)
    // A client without a position is at the newest event once its status has come, or soon after.
    for (const { stream, missed } of resumed)
      await until(() => idsOf(stream).length >= missed.length, 'the replay')
    const [live] = await store(1)
    for (const { name, stream, missed } of resumed) {
      await stream.until(({ id }) => id === String(live?.id), `the live event (${name})`)
      t.same(idsOf(stream), [...missed, String(live?.id)], name)
      const gaps = stream.events.flatMap(({ event, data }) =>
        event === 'gap' ? [JSON.parse(data) as object] : [],
      )
      const ahead = { requested: last + 1_000, oldest: last + 1, skipped: 0 }
      t.same(gaps, name === 'a future id' ? [ahead] : [], name)
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

function isStatus({ event }: StreamEvent) {
  return event === 'status'
}

function statusOf({ data }: StreamEvent): Status {
  return JSON.parse(data)
}

/** A status that says whether `code_host` is enabled. */
function saysEnabled(enabled: boolean) {
  return (event: StreamEvent) =>
    isStatus(event) &&
    statusOf(event).providers.some(
      (one) => one['name'] === 'code_host' && one['enabled'] === enabled,
    )
}

function idsOf(stream: EventStream) {
  return stream.events
    .filter(({ event }) => event === 'event-received')
    .map(({ id }) => id ?? 'none')
}
