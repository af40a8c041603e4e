import { t } from 'tap'
import { VARIABLES } from '../../../commands/frame/configuration.ts'
import { postgres } from '../../helpers/backends.ts'
import { runCli } from '../../helpers/cli.ts'
import { request } from '../../helpers/http.ts'
import type { Owner } from '../../helpers/owner.ts'
import type { Env } from '../../helpers/program.ts'
import {
  add,
  addMany,
  eventsOf,
  eventsWhen,
  groupOf,
  healthOf,
  queueEnv,
  settled,
  startRedis,
  untilRead,
} from '../../helpers/queue.ts'
import { secret } from '../../helpers/secrets.ts'
import { startServer } from '../../helpers/server.ts'
import { enable, payloadOf, postForm, refusals, shown } from '../../helpers/hooks.ts'
import { openStream } from '../../helpers/sse.ts'
import { until } from '../../helpers/until.ts'

const LIMIT = 2_048
const redis = await startRedis(t)

/** Starts the service on the streams of an empty Redis. */
async function startQueue(t: Owner, env: Env, channels: string) {
  await redis.send('FLUSHALL')
  return startServer(t, { services: ['hooks'], env: { ...queueEnv(redis, channels), ...env } })
}

await t.test('queue', async (t) => {
  const channels = 'orders, {eu}/audit.log,numbers'
  const env = { ...(await postgres.env(t)), HOOKS_MAX_BODY: String(LIMIT) }
  const server = await startQueue(t, env, channels)
  const { hooks: base } = server
  const stream = await openStream(t, `${base}/events`, { lastEventId: '0' })
  /** The newest event of a stream once it has so many. */
  const newest = async (name: string, count: number) =>
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
      'Delivery id': `orders:${id}`,
      'Content type': 'image/x',
    })
    t.same(headers, { 'trace-id': 'abc, def', api_token: '«redacted»', 'x-y': 'ab' })
    const curl = await request(`${base}/log/${event}?tab=curl`)
    t.match(curl.text, 'came from a message broker')
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

  await t.test('an entry may be empty, its type broken', async (t) => {
    await add(redis, 'orders', 'payload', '', 'event_type', '\0\u001b')
    const empty = await newest('orders', 3)
    t.match((await shown(base, empty)).facts, { 'Event type': 'none', 'Payload size': '0 B' })
    await settled(redis, 'orders')
  })

  await t.test('disabled means not consumed, and nothing is lost', async (t) => {
    const name = '{eu}/audit.log'
    await add(redis, name, 'payload', 'before')
    await eventsWhen(base, name, 1)
    await settled(redis, name)
    await untilRead(redis, 3)
    await enable(base, `queue:${name}`, false)
    await untilRead(redis, 2)
    await addMany(redis, name, 30)
    // What is read meanwhile shows that the consumers are at work.
    await addMany(redis, 'numbers', 30)
    await eventsWhen(base, 'numbers', 30)
    t.same(await groupOf(redis, name), { pending: 0, lag: 30 }, 'not even given out')
    const cli = await runCli(['provider', 'enable', `queue:${name}`], { env })
    t.equal(cli.code, 0)
    const ids = await eventsWhen(base, name, 31)
    await settled(redis, name)
    t.equal((await payloadOf(base, ids[0] ?? 0)).toString(), '{"n":30}', 'in their order')
  })

  await t.test('every stream is a provider with a channel', async (t) => {
    const list = await runCli(['provider', 'list', '--json'], { env })
    const queue = { trust_mode: 'queue', path: null, secret_status: 'none-by-design' }
    const all: Record<string, unknown>[] = JSON.parse(list.stdout)
    t.match(
      all.filter(({ family }) => family === 'queue'),
      ['numbers', 'orders', '{eu}/audit.log'].map((channel) => ({ ...queue, channel })),
    )
    const { text } = await request(`${base}/providers`)
    t.match(text, 'action="/providers/queue%3A%7Beu%7D%2Faudit.log/enabled"')
    t.equal((await request(`${base}/webhooks/queue/orders`, { method: 'POST' })).status, 404)
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
    await settled(redis, 'orders')
    const byHeaders = async () =>
      (await refusals(base, '&provider=queue:orders'))[0]?.reason.startsWith(`entry ${other}: `)
    await until(byHeaders, 'the one with long headers to be refused')
  })

  await t.test('a stream that is deleted is begun anew', async () => {
    await redis.send('DEL', 'numbers')
    await addMany(redis, 'numbers', 3)
    await eventsWhen(base, 'numbers', 33)
    await settled(redis, 'numbers')
  })

  await t.test(
    'a provider that is removed is not read, and comes with the next start',
    async (t) => {
      await untilRead(redis, 3)
      const removed = await postForm(base, '/providers/queue%3Anumbers/remove', {})
      t.equal(removed.status, 200)
      await untilRead(redis, 2)
      await addMany(redis, 'numbers', 5)
      await add(redis, 'orders', 'payload', 'marker')
      await settled(redis, 'orders')
      t.match(await groupOf(redis, 'numbers'), { pending: 0, lag: 5 })
      t.match(await server.stop(), { code: 0 })
      t.match(await groupOf(redis, 'orders'), { pending: 0, lag: 0 })
    },
  )
})

await t.test('entries and streams in trouble', async (t) => {
  const env = await postgres.env(t)
  // A rule of the operator's own database stands for whatever it may refuse as data.
  const rule = `alter table hooks.events add constraint no_poison check (event_type <> 'poison')`
  await postgres.query(env, rule)
  const { hooks: base } = await startQueue(t, env, 'orders,dead,other')

  await t.test('an entry that the database refuses', async (t) => {
    await add(redis, 'orders', 'payload', '1')
    const poison = await add(redis, 'orders', 'payload', '2', 'event_type', 'poison')
    await addMany(redis, 'orders', 20)
    await eventsWhen(base, 'orders', 21)
    await settled(redis, 'orders')
    const [refused] = await refusals(base, '&provider=queue:orders')
    const reason = `entry ${poison}: refused by the database as data (23514)`
    t.match(refused, { provider: 'queue:orders', reason, status: 403 })
  })

  await t.test('entries of a dead consumer are taken over, trimmed ones skipped', async (t) => {
    await untilRead(redis, 3)
    await enable(base, 'queue:dead', false)
    await untilRead(redis, 2)
    const ids = await addMany(redis, 'dead', 20)
    const from = ['GROUP', 'gatehouse', 'dead', 'COUNT', '20', 'STREAMS', 'dead', '>']
    await redis.send('XREADGROUP', ...from)
    await redis.send('XDEL', 'dead', ids[3] ?? '')
    // As if it had been dead for an hour.
    const idle = ['IDLE', '3600000', 'JUSTID']
    await redis.send('XCLAIM', 'dead', 'gatehouse', 'dead', '0', ...ids, ...idle)
    await enable(base, 'queue:dead', true)
    await eventsWhen(base, 'dead', 19, 15_000)
    await settled(redis, 'dead')
    const stored = `select external_id from hooks.events where provider = 'queue:dead' order by id`
    const rows = await postgres.query(env, stored)
    const expected = ids.filter((id) => id !== ids[3])
    t.same(
      rows,
      expected.map((id) => ({ external_id: `dead:${id}` })),
    )
  })

  await t.test('a key of another type does not stop the other streams', async (t) => {
    await redis.send('DEL', 'other')
    await redis.send('SET', 'other', 'no stream')
    const missed = async () => (await healthOf(base))['broker'] === 'error'
    await until(missed, 'the stream to be missed')
    const reasons = ['the queue broker is out of reach']
    t.match(await healthOf(base), { status: 'degraded', reasons })
    const says = async () => (await request(`${base}/`)).text.includes('Broker out of reach</p>')
    await until(says, 'the page to say so')
    await add(redis, 'orders', 'payload', '1')
    await eventsWhen(base, 'orders', 22)
    await enable(base, 'queue:other', false)
    await until(async () => (await healthOf(base))['broker'] === 'ok', 'it to count no more')
  })
})

await t.test('a wrong password is reported without the password', async (t) => {
  const wrong = redis.url.replace('secret-', 'wrong-')
  const env = { ...(await postgres.env(t)), HOOKS_QUEUE_URL: wrong }
  const server = await startQueue(t, env, 'orders')
  t.match(await healthOf(server.hooks), { status: 'degraded', broker: 'error' })
  const logged = () => server.logs().find((text) => text.includes('"queue out of reach"'))
  t.match(await until(logged, 'the log line'), /WRONGPASS/)
  t.notOk(server.logs().join('\n').includes(new URL(wrong).password))
})

await t.test('a user with few rights is enough, and a switch counts at once', async (t) => {
  const password = secret('queue-user')
  const rights = ['xgroup', 'xreadgroup', 'xautoclaim', 'xack', 'xinfo', 'client|id']
  const allowed = rights.map((right) => `+${right}`)
  const user = ['reader', 'on', `>${password}`, '~orders', '-@all']
  await redis.send('ACL', 'SETUSER', ...user, ...allowed)
  const url = redis.url.replace(/\/\/:[^@]*@/, `//reader:${password}@`)
  const env = { ...(await postgres.env(t)), HOOKS_QUEUE_URL: url }
  const { hooks: base } = await startQueue(t, env, 'orders')
  await addMany(redis, 'orders', 10)
  await eventsWhen(base, 'orders', 10)
  await enable(base, 'queue:orders', false)
  await untilRead(redis, 0)
  await enable(base, 'queue:orders', true)
  await untilRead(redis, 1)
})

await t.test('values that no broker can have stop the start', async (t) => {
  const folder = await postgres.env(t)
  const env = { ...folder, HOOKS_QUEUE_URL: 'redis://:hush@h/orders' }
  const ended = await runCli(['migrate'], { env })
  t.match(ended, { code: 1, stderr: /HOOKS_QUEUE_URL is not valid .*expected a redis:\/\/ or/ })
  t.notMatch(ended.stderr, 'hush')

  const { HOOKS_QUEUE_URL: urls, HOOKS_QUEUE_CHANNELS: names } = VARIABLES
  for (const text of ['http://127.0.0.1', 'redis://h/0/1', 'redis://:%@h']) {
    t.throws(() => urls.read(text), text)
  }
  t.equal(urls.read('rediss://u:p%40@[::1]:1/15'), 'rediss://u:p%40@[::1]:1/15')
  for (const text of ['a,,b', 'a b', 'a\u0007', 'x'.repeat(201)]) {
    t.throws(() => names.read(text), text)
  }
  t.same(names.read('b, a:1/x ,b'), ['b', 'a:1/x'])
})

await t.test('one variable alone is logged, and no queue is read', async (t) => {
  const env = { ...(await postgres.env(t)), HOOKS_QUEUE_CHANNELS: 'orders' }
  const server = await startServer(t, { services: ['hooks'], env })
  t.match(await healthOf(server.hooks), { status: 'ok', broker: 'disabled' })
  t.match(server.logs().join('\n'), 'no queue is read: HOOKS_QUEUE_URL is not set')
})
