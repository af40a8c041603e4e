import { t } from 'tap'
import type { Test } from 'tap'
import { eachBackend } from '../helpers/backends.ts'
import { runCli } from '../helpers/cli.ts'
import { request } from '../helpers/http.ts'
import {
  add,
  addMany,
  eventsOf,
  eventsWhen,
  groupOf,
  healthOf,
  settled,
  startQueue,
} from '../helpers/queue-setup.ts'
import { enable, payloadOf, refusals, shown } from '../helpers/signing-setup.ts'
import { openStream } from '../helpers/sse.ts'
import { until } from '../helpers/until.ts'

const LIMIT = 2_048

await eachBackend(t, 'queue', async (t: Test, backend) => {
  const channels = 'orders, {eu}/audit.log,numbers'
  const limit = { HOOKS_MAX_BODY: String(LIMIT) }
  const { redis, server, base, env } = await startQueue(t, backend, channels, limit)
  const stream = await openStream(t, `${base}/events`, { lastEventId: '0' })
  /** The newest event of a stream once it has so many. */
  const newest = async (name: string, count: number): Promise<number> =>
    (await eventsWhen(base, name, count))[0] ?? 0

  await t.test('the field payload is the payload, byte for byte', async (t) => {
    const bytes = Buffer.from([0, 255, 10, 13, 0xc3, 0x28])
    const fields = ['Trace-Id', 'abc', 'api_token', 'hush', 'x y', 'a\0b', 'trace-id', 'def']
    const known = ['event_type', 'order.made', 'content_type', 'image/x']
    const id = await add(redis, 'orders', 'payload', bytes, ...known, ...fields)
    const event = await newest('orders', 1)
    t.ok((await payloadOf(base, event)).equals(bytes))
    const { facts, headers } = await shown(base, event)
    t.match(facts, {
      Provider: 'queue:orders',
      'Event type': 'order.made',
      'Trust mode': 'queue',
      Verified: 'no',
      Verification: 'none',
      'Delivery id': `orders:${id}`,
      'Content type': 'image/x',
      'Source address': 'none',
    })
    t.same(headers, { 'trace-id': 'abc, def', api_token: '«redacted»', 'x-y': 'ab' })
    const { text } = await request(`${base}/log/${event}`)
    t.notMatch(text, 'Copy as curl', 'there is no receiver to send it to')
    t.match(await stream.until(({ id: last }) => last === String(event)), {
      event: 'event-received',
      data: /"provider":"queue:orders","event_type":"order.made","trust_mode":"queue"/,
    })
    await settled(redis, 'orders')
  })

  await t.test('without it all fields are the payload, as JSON', async (t) => {
    const raw = Buffer.from([255, 254])
    const fields = ['__proto__', 'p', 'tag', 'a', 'tag', 'b', 'event_type', 'tagged', 'raw', raw]
    await add(redis, 'orders', ...fields, 'text', 'ü"\n')
    const event = await newest('orders', 2)
    const json = '{"__proto__":"p","tag":["a","b"],"event_type":"tagged","raw":{"base64":"//4="},'
    t.equal((await payloadOf(base, event)).toString(), `${json}"text":"ü\\"\\n"}`)
    const { facts, headers } = await shown(base, event)
    t.match(facts, { 'Event type': 'tagged', 'Content type': 'application/json' })
    t.same(headers, {})
  })

  await t.test('an entry may be empty, its type long or broken', async (t) => {
    await add(redis, 'orders', 'payload', '', 'event_type', '\0\u001b')
    const empty = await newest('orders', 3)
    t.match((await shown(base, empty)).facts, { 'Event type': 'none', 'Payload size': '0 B' })
    await add(redis, 'orders', 'payload', '{}', 'event_type', `${'y'.repeat(254)}😀`)
    const long = await newest('orders', 4)
    t.equal((await shown(base, long)).facts['Event type'], `${'y'.repeat(254)}�`)
    await settled(redis, 'orders')
  })

  await t.test('every stream is a provider with a channel', async (t) => {
    const list = await runCli(['provider', 'list', '--json'], { env })
    const queue = { family: 'queue', trust_mode: 'queue', enabled: true, path: null }
    const all: Record<string, unknown>[] = JSON.parse(list.stdout)
    t.match(
      all.filter(({ family }) => family === 'queue'),
      ['numbers', 'orders', '{eu}/audit.log'].map((channel) => ({
        ...queue,
        name: `queue:${channel}`,
        secret_status: 'none-by-design',
        channel,
      })),
    )
    const { text } = await request(`${base}/providers`)
    t.match(text, /<dt>Channel<\/dt>\s*<dd><code>\{eu\}\/audit\.log<\/code>/)
    t.equal((await request(`${base}/webhooks/queue/orders`, { method: 'POST' })).status, 404)
  })

  await t.test('disabled means not consumed, and nothing is lost', async (t) => {
    const name = '{eu}/audit.log'
    await add(redis, name, 'payload', 'before')
    await eventsWhen(base, name, 1)
    await settled(redis, name)
    await enable(base, `queue:${name}`, false)
    await addMany(redis, name, 100)
    // What is read meanwhile shows that the consumers are at work.
    await addMany(redis, 'numbers', 100)
    await eventsWhen(base, 'numbers', 100)
    t.same(await groupOf(redis, name), { pending: 0, lag: 100 }, 'not even given out')
    t.equal((await eventsOf(base, name)).length, 1)
    t.match(await healthOf(base), { status: 'ok', broker: 'ok' })
    const off = await stream.until(({ event, data }) => {
      return event === 'status' && data.includes(`"queue:${name}","trust_mode":"queue","enabled":f`)
    }, 'the status to say so')
    t.match(off.data, '"broker":"ok"')

    const cli = await runCli(['provider', 'enable', `queue:${name}`], { env })
    t.equal(cli.code, 0)
    const ids = await eventsWhen(base, name, 101)
    await settled(redis, name)
    t.equal((await payloadOf(base, ids[0] ?? 0)).toString(), '{"n":100}', 'in their order')
    t.equal((await payloadOf(base, ids[99] ?? 0)).toString(), '{"n":1}')
  })

  await t.test('an entry over the limit is refused and the next ones are stored', async (t) => {
    const before = (await eventsOf(base, 'orders')).length
    const id = await add(redis, 'orders', 'payload', 'x'.repeat(LIMIT + 1))
    await add(redis, 'orders', 'payload', 'x'.repeat(LIMIT))
    await eventsWhen(base, 'orders', before + 1)
    await settled(redis, 'orders')
    const [refused] = await refusals(base, '&provider=queue:orders')
    const reason = `entry ${id}: its payload and headers are over HOOKS_MAX_BODY`
    t.same(refused, { provider: 'queue:orders', reason, status: 413, source: 'unknown' })
    const wide = ['event_type', 'wide', 'note', 'x'.repeat(LIMIT)]
    const other = await add(redis, 'orders', 'payload', 'x', ...wide)
    await add(redis, 'orders', 'payload', 'x'.repeat(LIMIT / 2), 'note', 'x'.repeat(LIMIT / 4))
    await eventsWhen(base, 'orders', before + 2)
    await settled(redis, 'orders')
    const [byHeaders] = await refusals(base, '&provider=queue:orders')
    t.match(byHeaders, { reason: new RegExp(`^entry ${other}: .*HOOKS_MAX_BODY`), status: 413 })
    const [kept] = (await redis.send('XRANGE', 'orders', id, id)) as readonly unknown[]
    t.ok(kept, 'it stays in the stream')
  })

  await t.test('a broker that is gone is told everywhere, and read again', async (t) => {
    t.match(await healthOf(base), { http: '200', status: 'ok', broker: 'ok', db: 'ok' })
    await redis.stop()
    await until(async () => (await healthOf(base))['broker'] === 'error', 'the broker to be missed')
    t.match(await healthOf(base), { http: '200', status: 'degraded', db: 'ok', database: 'ok' })
    await stream.until(({ event, data }) => event === 'status' && data.includes('"broker":"error"'))
    const page = await request(`${base}/`)
    t.match(page.text, /<p class="trouble" data-trouble="broker"\s*>\s*Broker out of reach/)
    await redis.start()
    const count = (await eventsOf(base, 'orders')).length
    await add(redis, 'orders', 'payload', 'again')
    await eventsWhen(base, 'orders', count + 1)
    await until(async () => (await healthOf(base))['broker'] === 'ok', 'all streams to be read')
    t.match(await healthOf(base), { status: 'ok' })
    await until(async () => {
      const { text } = await request(`${base}/`)
      return /data-trouble="broker"\s+hidden/.test(text)
    }, 'the page to say so')
  })

  await t.test('a stream that is deleted is begun anew', async () => {
    await redis.send('DEL', 'numbers')
    await addMany(redis, 'numbers', 3)
    await eventsWhen(base, 'numbers', 103)
    await settled(redis, 'numbers')
  })

  await t.test(
    'a provider that is removed is not read, and comes with the next start',
    async (t) => {
      const removed = await request(`${base}/providers/queue%3Anumbers/remove`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
      })
      t.equal(removed.status, 200)
      await addMany(redis, 'numbers', 5)
      await add(redis, 'orders', 'payload', 'marker')
      await settled(redis, 'orders')
      t.match(await groupOf(redis, 'numbers'), { pending: 0, lag: 5 })
      t.match(await server.stop(), { code: 0 })
      t.match(await groupOf(redis, 'orders'), { pending: 0, lag: 0 })
    },
  )
})
