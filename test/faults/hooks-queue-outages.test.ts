import { t } from 'tap'
import { postgres } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import {
  add,
  addMany,
  eventsOf,
  eventsWhen,
  groupOf,
  healthOf,
  queueEnv,
  settled,
  startQueue,
  startRedis,
} from '../helpers/queue.ts'
import { startServer } from '../helpers/server.ts'
import { enable } from '../helpers/hooks.ts'
import { startTcpProxy } from '../helpers/tcp-proxy.ts'
import { until } from '../helpers/until.ts'

const hooks = { services: ['hooks'] } as const

const FIGURES = `select (select count(*) from hooks.events)::int as events,
                        (select count(*) from hooks.repeats)::int as repeats`

t.test('Redis may be down at the start', async (t) => {
  const redis = await startRedis(t)
  await redis.stop()
  const env = { ...(await postgres.env(t)), ...queueEnv(redis, 'orders') }
  const server = await startServer(t, { ...hooks, env })
  t.match(await healthOf(server.hooks), { http: '200', status: 'degraded', broker: 'error' })
  await redis.start()
  await add(redis, 'orders', 'payload', 'late')
  await eventsWhen(server.hooks, 'orders', 1, 15_000)
  t.match(await healthOf(server.hooks), { status: 'ok', broker: 'ok' })
  t.equal(server.logs().filter((line) => line.includes('"queue out of reach"')).length, 1)
  const page = await request(`${server.hooks}/settings`)
  t.match(page.text, /HOOKS_QUEUE_URL[\s\S]*set \(environment\)/, 'the URL holds a secret')
})

t.test('what was added before the first start is read from the beginning', async (t) => {
  const redis = await startRedis(t)
  await addMany(redis, 'orders', 600)
  const env = { ...(await postgres.env(t)), ...queueEnv(redis, 'orders') }
  const first = await startServer(t, { ...hooks, env })
  await until(async () => (await eventsOf(first.hooks, 'orders')).length > 0, 'the first events')
  t.match(await first.stop(), { code: 0 }, 'stopped while it reads')
  t.equal((await groupOf(redis, 'orders')).pending, 0, 'what it had read is acknowledged')
  const second = await startServer(t, { ...hooks, env })
  await settled(redis, 'orders')
  await second.stop()
  const [row] = await postgres.query(env, FIGURES)
  t.same(row, { events: 600, repeats: 0 })
})

t.test('without the database nothing is acknowledged, with it everything is stored', async (t) => {
  const env = await postgres.env(t)
  const proxy = await startTcpProxy(t, env['DATABASE_URL'] ?? '')
  const through = { ...env, DATABASE_URL: proxy.through(env['DATABASE_URL'] ?? '') }
  const { redis, base } = await startQueue(t, { ...postgres, env: async () => through }, 'orders')
  proxy.refuse()
  proxy.reset()
  await addMany(redis, 'orders', 250)
  await until(async () => (await groupOf(redis, 'orders')).pending > 0, 'entries to be read')
  const health = await request(`${base}/healthz`)
  t.equal(health.status, 503, 'the database is missed, and Redis is not to blame')
  await proxy.pass()
  await settled(redis, 'orders', 30_000)
  t.equal((await eventsOf(base, 'orders')).length, 200, 'a full page')
  t.match(await healthOf(base), { status: 'ok', broker: 'ok' })
})

t.test('two instances share a stream, and a switch counts for both', async (t) => {
  const { redis, base, env } = await startQueue(t, postgres, 'orders')
  const other = await startServer(t, { ...hooks, env })
  const clients = async () =>
    String(await redis.send('CLIENT', 'LIST'))
      .trim()
      .split('\n').length
  await until(async () => (await clients()) === 5, 'two connections each, and that of the test')
  await addMany(redis, 'orders', 500)
  await settled(redis, 'orders')
  t.same(await postgres.query(env, FIGURES), [{ events: 500, repeats: 0 }])
  const info = (await redis.send('XINFO', 'CONSUMERS', 'orders', 'gatehouse')) as unknown[]
  t.equal(info.length, 2, 'a consumer each')

  await enable(other.hooks, 'queue:orders', false)
  const page = (address: string) => request(`${address}/providers`).then(({ text }) => text)
  await until(async () => (await page(base)).includes('Disabled'), 'both to know it')
  await until(async () => (await clients()) === 1, 'both to stop reading: the test alone is left')
  await addMany(redis, 'orders', 50)
  t.same(await groupOf(redis, 'orders'), { pending: 0, lag: 50 })
  await enable(base, 'queue:orders', true)
  await settled(redis, 'orders')
})

t.test('a Redis that answers nobody is noticed and does not hold up the stop', async (t) => {
  const { redis, server, base } = await startQueue(t, postgres, 'orders')
  redis.freeze()
  const broken = async () => (await healthOf(base))['broker'] === 'error'
  await until(broken, 'the broker to be missed', 20_000)
  redis.thaw()
  await add(redis, 'orders', 'payload', '1')
  await eventsWhen(base, 'orders', 1, 20_000)
  redis.freeze()
  t.match(await server.stop(), { code: 0, signal: null })
})
