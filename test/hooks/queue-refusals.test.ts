import { t } from 'tap'
import type { Test } from 'tap'
import { Decode } from 'typebox/value'
import { Variables } from '../../kernel/variables.ts'
import { backends, onPostgres } from '../helpers/backends.ts'
import { runCli } from '../helpers/cli.ts'
import {
  add,
  addMany,
  eventsWhen,
  groupOf,
  healthOf,
  settled,
  startQueue,
} from '../helpers/queue-setup.ts'
import { startRedis } from '../helpers/redis.ts'
import { secret } from '../helpers/secrets.ts'
import { startServer } from '../helpers/server.ts'
import { enable, refusals, shown } from '../helpers/signing-setup.ts'
import { until } from '../helpers/until.ts'

const [embedded] = backends
const hooks = { services: ['hooks'] } as const

t.test('entries of a dead consumer are taken over, trimmed ones are no trouble', async (t) => {
  const { redis, server, base, env } = await startQueue(t, embedded, 'orders')
  await settled(redis, 'orders')
  await enable(base, 'queue:orders', false)
  const ids = await addMany(redis, 'orders', 20)
  const from = ['GROUP', 'gatehouse', 'dead', 'COUNT', '20', 'STREAMS', 'orders', '>']
  await redis.send('XREADGROUP', ...from)
  t.equal((await groupOf(redis, 'orders')).pending, 20)
  await redis.send('XDEL', 'orders', ids[3] ?? '')
  // As if it had been dead for an hour.
  const idle = ['IDLE', '3600000', 'JUSTID']
  await redis.send('XCLAIM', 'orders', 'gatehouse', 'dead', '0', ...ids, ...idle)
  await enable(base, 'queue:orders', true)
  await eventsWhen(base, 'orders', 19, 15_000)
  await settled(redis, 'orders')
  await server.stop()
  const rows = await embedded.query(env, 'select external_id from hooks.events order by id')
  const expected = ids.filter((id) => id !== ids[3]).map((id) => `orders:${id}`)
  t.same(
    rows.map((row) => row['external_id']),
    expected,
  )
})

await onPostgres(t, 'an entry that the database refuses', async (t: Test, backend) => {
  const env = await backend.env(t)
  // A rule of the operator's own database stands for whatever it may refuse as data.
  await backend.query(
    env,
    `alter table hooks.events add constraint no_poison check (event_type <> 'poison')`,
  )
  const { redis, base } = await startQueue(t, { ...backend, env: async () => env }, 'orders')
  await add(redis, 'orders', 'payload', '1')
  const poison = await add(redis, 'orders', 'payload', '2', 'event_type', 'poison')
  await addMany(redis, 'orders', 20)
  const ids = await eventsWhen(base, 'orders', 21)
  await settled(redis, 'orders')
  t.match((await shown(base, ids[0] ?? 0)).facts, { Attempts: '1' })
  const [refused] = await refusals(base, '&provider=queue:orders')
  const reason = `entry ${poison}: refused by the database as data (23514)`
  t.match(refused, { provider: 'queue:orders', reason, status: 403 })
})

t.test('one channel in trouble leaves the others alone', async (t) => {
  const redis = await startRedis(t)
  await redis.send('SET', 'text', 'no stream')
  const queue = { HOOKS_QUEUE_URL: redis.url, HOOKS_QUEUE_CHANNELS: 'text,orders' }
  const env = { ...(await embedded.env(t)), ...queue }
  const { hooks: base } = await startServer(t, { ...hooks, env })
  await add(redis, 'orders', 'payload', '1')
  await eventsWhen(base, 'orders', 1)
  const reasons = ['the queue broker is out of reach']
  t.match(await healthOf(base), { status: 'degraded', broker: 'error', reasons })
  await enable(base, 'queue:text', false)
  await until(async () => (await healthOf(base))['broker'] === 'ok', 'it to count no more')
  t.equal((await healthOf(base))['reasons'], undefined)
  await redis.send('DEL', 'text')
  await enable(base, 'queue:text', true)
  await add(redis, 'text', 'payload', '1')
  await eventsWhen(base, 'text', 1)
})

t.test('a wrong password is told without the password', async (t) => {
  const redis = await startRedis(t)
  const wrong = redis.url.replace('secret-', 'wrong-')
  const queue = { HOOKS_QUEUE_URL: wrong, HOOKS_QUEUE_CHANNELS: 'orders' }
  const env = { ...(await embedded.env(t)), ...queue }
  const server = await startServer(t, { ...hooks, env })
  t.match(await healthOf(server.hooks), { status: 'degraded', broker: 'error' })
  const line = server.logs().find((text) => text.includes('"queue out of reach"')) ?? ''
  t.match(line, /WRONGPASS/)
  t.notOk(server.logs().join('\n').includes(new URL(wrong).password))
})

t.test('a user with few rights is enough, and a switch counts at once all the same', async (t) => {
  const redis = await startRedis(t)
  const password = secret('queue-user')
  const rights = ['xgroup', 'xreadgroup', 'xautoclaim', 'xack', 'xinfo', 'client|id']
  const allowed = rights.map((right) => `+${right}`)
  await redis.send('ACL', 'SETUSER', 'reader', 'on', `>${password}`, '~orders', '-@all', ...allowed)
  const url = redis.url.replace(/\/\/:[^@]*@/, `//reader:${password}@`)
  const queue = { HOOKS_QUEUE_URL: url, HOOKS_QUEUE_CHANNELS: 'orders' }
  const env = { ...(await embedded.env(t)), ...queue }
  const { hooks: base } = await startServer(t, { ...hooks, env })
  await addMany(redis, 'orders', 10)
  await eventsWhen(base, 'orders', 10)
  await enable(base, 'queue:orders', false)
  await until(
    async () => !(await redis.send('CLIENT', 'LIST'))?.toString().includes('reader'),
    'the consumer to leave',
  )
  await addMany(redis, 'orders', 10)
  t.match(await groupOf(redis, 'orders'), { pending: 0, lag: 10 })
  await enable(base, 'queue:orders', true)
  await eventsWhen(base, 'orders', 20)
})

t.test('values that no broker can have stop the start', async (t) => {
  const folder = await embedded.env(t)
  const [url, name] = ['redis://:hush@h/orders', 'x'.repeat(201)]
  const byUrl = await runCli(['migrate'], { env: { ...folder, HOOKS_QUEUE_URL: url } })
  t.match(byUrl, { code: 1, stderr: /HOOKS_QUEUE_URL is not valid .*expected a redis:\/\/ or/ })
  t.notMatch(byUrl.stderr, 'hush')
  const env = { ...folder, HOOKS_QUEUE_CHANNELS: `a,${name}` }
  const byName = await runCli(['migrate'], { env })
  t.match(byName, { code: 1, stderr: /HOOKS_QUEUE_CHANNELS .*expected a comma-separated list/ })

  const { HOOKS_QUEUE_URL: urls, HOOKS_QUEUE_CHANNELS: names } = Variables.properties
  for (const text of ['http://127.0.0.1', 'redis:///x', 'redis://h/0/1', 'redis://:%@h', 'x']) {
    t.throws(() => Decode(urls, text), text)
  }
  for (const text of ['redis://h', 'rediss://u:p%40@h:1/15', 'redis://[::1]:6379/']) {
    t.equal(Decode(urls, text), text)
  }
  for (const text of ['a,,b', 'a b', 'a\u0007', ',']) t.throws(() => Decode(names, text), text)
  t.same(Decode(names, 'b, a:1/x ,b'), ['b', 'a:1/x'])
})

t.test('one variable alone is said and read by nobody', async (t) => {
  const env = { ...(await embedded.env(t)), HOOKS_QUEUE_CHANNELS: 'orders' }
  const server = await startServer(t, { ...hooks, env })
  t.match(await healthOf(server.hooks), { status: 'ok', broker: 'disabled' })
  t.match(server.logs().join('\n'), 'no queue is read: HOOKS_QUEUE_URL is not set')
})
