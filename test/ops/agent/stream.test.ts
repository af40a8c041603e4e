import { t } from 'tap'
import { backends, onPostgres } from '../../helpers/backends.ts'
import { request } from '../../helpers/http.ts'
import { metricOf } from '../../helpers/deliveries.ts'
import {
  beginByHand,
  endByHand,
  ended,
  linesOf,
  sessionsOf,
  startGate,
  startOps,
  storeLines,
  trigger,
} from '../../helpers/ops.ts'
import { refuseAll } from '../../helpers/refusals.ts'
import { openStream } from '../../helpers/sse.ts'
import { until } from '../../helpers/until.ts'

const postgres = backends[1]
const LINES = 150
const upTo = (last: number) => Array.from({ length: last }, (_, at) => at + 1)

await onPostgres(
  t,
  'a session streams its lines as they come, then its end',
  async (t, backend) => {
    const gate = await startGate(t)
    const ops = await startOps(t, backend, { OPS_INVENTORY: gate.inventory })
    await gate.pass()
    await ended(ops)
    const { id } = await trigger(ops)
    await until(() => gate.waiting() === 1, 'the session to wait')
    const stream = await openStream(t, `${ops.base}/sessions/${id}/stream`)
    t.equal(stream.status, 200)
    t.equal(stream.headers['content-type'], 'text/event-stream; charset=utf-8')
    t.equal(stream.headers['cache-control'], 'no-store, no-transform')
    t.equal(stream.headers['x-accel-buffering'], 'no')
    const first = await stream.until(({ event }) => event === 'line', 'the first line')
    t.equal(first.id, '1')
    const at = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
    const line = { seq: 1, at, kind: 'system', text: '1 checks of 1 services' }
    t.match(JSON.parse(first.data), line)
    await gate.pass()
    const done = await stream.until(({ event }) => event === 'done', 'the end')
    t.same(JSON.parse(done.data), { status: 'completed' })
    t.equal(stream.lastEventId, '3', 'the end moves nobody')
    await stream.closed
    t.same(linesOf(stream), [1, 2, 3], 'each line once, in order')

    await t.test('a finished session is replayed, from anywhere, and closes', async (t) => {
      for (const [lastEventId, wanted] of [
        ['', [1, 2, 3]],
        ['1', [2, 3]],
        ['3', []],
        ['99', [1, 2, 3]],
      ] as const) {
        const options = lastEventId === '' ? {} : { lastEventId }
        const replay = await openStream(t, `${ops.base}/sessions/${id}/stream`, options)
        await replay.closed
        t.same(linesOf(replay), wanted, `after ${lastEventId}`)
        t.same(replay.events.at(-1)?.data, '{"status":"completed"}')
      }
      const query = await openStream(t, `${ops.base}/sessions/${id}/stream?last_event_id=2`)
      await query.closed
      t.same(linesOf(query), [3])
    })

    await t.test(
      'refused: no such session or line, no method but GET, a foreign host',
      async (t) => {
        const path = `/sessions/${id}/stream`
        await refuseAll(t, { service: 'ops', base: ops.base, state: () => sessionsOf(ops) }, [
          ['GET /sessions/999999/stream', 404],
          [`GET ${path}?last_event_id=none`, 400],
          [`POST ${path}`, 405],
          [{ call: `GET ${path}`, headers: { host: 'evil.example' } }, 403],
        ])
        t.equal((await request(ops.base + path, { method: 'HEAD' })).status, 200)
      },
    )

    await t.test(
      'the server stops: the stream ends with the delay to come back after',
      async (t) => {
        gate.shut()
        const { id: running } = await trigger(ops)
        const stream = await openStream(t, `${ops.base}/sessions/${running}/stream`)
        await stream.until(({ event }) => event === 'line')
        await ops.server.stop()
        await stream.closed
        t.ok((stream.retry ?? 0) > 0)
        t.notOk(
          stream.events.some(({ event }) => event === 'done'),
          'it is not told as ended',
        )
      },
    )
  },
)

const one = await startOps(t, postgres)
await ended(one)

t.test('two servers: cut off again and again, no hole and no repeat', async (t) => {
  const two = await startOps(t, postgres, one.env)
  const session = await beginByHand(postgres, one.env)
  const seen: number[] = []
  let lastEventId = ''
  const writer = (async () => {
    for (let stored = 0; stored < LINES;) {
      const count = Math.min(1 + (stored % 7), LINES - stored)
      await storeLines(postgres, one.env, session, stored + 1, count)
      stored += count
    }
  })()
  const steady = await openStream(t, `${two.base}/sessions/${session}/stream`)
  for (let round = 0; seen.length < LINES; round++) {
    const { base } = round % 2 === 0 ? one : two
    const options = lastEventId === '' ? {} : { lastEventId }
    const stream = await openStream(t, `${base}/sessions/${session}/stream`, options)
    const wanted = Math.min(seen.length + 20, LINES)
    await stream.until(({ id }) => Number(id) >= wanted, `line ${wanted}`, 20_000)
    stream.close()
    const got = linesOf(stream)
    seen.push(...got)
    lastEventId = String(got.at(-1))
  }
  await writer
  t.same(seen, upTo(LINES))
  await endByHand(postgres, one.env, session, 'failed')
  await steady.closed
  t.same(linesOf(steady), seen, 'and the one that was never cut off')
  t.equal(steady.events.at(-1)?.data, '{"status":"failed"}')
  await two.server.stop()
})

t.test('a notification that is lost is healed', async (t) => {
  const session = await beginByHand(postgres, one.env)
  const stream = await openStream(t, `${one.base}/sessions/${session}/stream`)
  await storeLines(postgres, one.env, session, 1, 3, { tells: false })
  await stream.until(({ id }) => id === '3', 'the lines nobody told of', 20_000)
  await endByHand(postgres, one.env, session, 'completed', { tells: false })
  await stream.closed
  t.same(linesOf(stream), [1, 2, 3])
})

t.test(
  'a client that does not read is cut off, others are not, and it may come back',
  async (t) => {
    const session = await beginByHand(postgres, one.env)
    const url = `${one.base}/sessions/${session}/stream`
    const cutOff = async () =>
      metricOf(
        (await request(`${one.base}/metrics`)).text,
        'gatehouse_ops_stream_cut_off_total',
      ) ?? 0
    await storeLines(postgres, one.env, session, 1, 1)
    const [idler, reader] = [await openStream(t, url), await openStream(t, url)]
    await Promise.all([idler.until(({ id }) => id === '1'), reader.until(({ id }) => id === '1')])
    idler.pause()
    let stored = 1
    while ((await cutOff()) === 0 && stored < 20_000) {
      await storeLines(postgres, one.env, session, stored + 1, 100, { bytes: 16_000 })
      stored += 100
      const last = String(stored)
      await until(() => reader.lastEventId === last, 'the reader to have read', 20_000)
    }
    t.equal(await cutOff(), 1)
    const all = upTo(stored)
    t.same(linesOf(reader), all, 'the reader has read everything once')
    idler.resume()
    await idler.closed
    const seen = linesOf(idler)
    t.same(seen, all.slice(0, seen.length), 'what the other was sent is whole')
    t.ok(seen.length < stored)
    const back = await openStream(t, url, { lastEventId: String(seen.at(-1)) })
    await back.until(({ id }) => id === String(stored), 'the newest line', 30_000)
    t.same(linesOf(back), all.slice(seen.length))
    await endByHand(postgres, one.env, session, 'completed')
  },
)
