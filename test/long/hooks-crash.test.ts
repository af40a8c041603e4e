import { t } from 'tap'
import { backends, onPostgres } from '../helpers/backends.ts'
import { healthOf, queueEnv, settled, startRedis, type Redis } from '../helpers/queue.ts'
import { startServerProcess } from '../helpers/server-process.ts'
import { until } from '../helpers/until.ts'
import { randomInt } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { createSender, startLoad } from '../helpers/deliveries.ts'
import { addDestination, eventOf, listed, retry, untilListed } from '../helpers/destinations.ts'
import { startReceiver } from '../helpers/replays.ts'

const STREAM = 'orders'
const ENTRIES = 20_000
const CHUNK = 250
/** Stored events at which the consumer is killed, and at which Redis is. */
const KILLS = [2_000, 7_000, 15_000]
const REDIS_KILL = 11_000
const LONG_MS = 60_000

t.test('consumer killed three times, Redis killed once: each entry is stored once', async (t) => {
  const [, postgres] = backends
  const redis = await startRedis(t)
  const env = { ...(await postgres.env(t)), ...queueEnv(redis, STREAM) }
  const start = () => startServerProcess(t, { services: ['hooks'], env })
  let server = await start()

  const figure = async (text: string) => {
    const [row] = await postgres.query(env, `select ${text} as figure`)
    return Number(row?.['figure'])
  }
  const stored = () => figure('(select count(*) from hooks.events)')
  const reach = (count: number) =>
    until(async () => (await stored()) >= count, `${count} events to be stored`, LONG_MS)

  const adding = addAll(redis)
  for (const at of [...KILLS, REDIS_KILL].toSorted((a, b) => a - b)) {
    await reach(at)
    if (at === REDIS_KILL) {
      await redis.stop('SIGKILL')
      await until(
        async () => (await healthOf(server.hooks))['broker'] === 'error',
        'the broker to be missed',
      )
      await redis.start()
    } else {
      await server.kill()
      t.ok((await stored()) < ENTRIES, `killed before all were stored, after ${at}`)
      server = await start()
    }
  }
  await adding
  await reach(ENTRIES)
  await settled(redis, STREAM, LONG_MS)

  t.equal(await redis.send('XLEN', STREAM), ENTRIES)
  t.equal(await stored(), ENTRIES)
  const rows = await postgres.query(
    env,
    `select external_id, convert_from(payload, 'UTF8') as payload from hooks.events order by id`,
  )
  const found = new Map(rows.map((row) => [row['external_id'], row['payload']]))
  t.equal(found.size, ENTRIES, 'no two events of one entry')
  const wrong = numbers().filter((n) => found.get(`${STREAM}:${n}-0`) !== payloadOf(n))
  t.same(wrong, [], 'each entry has its event with its payload')
  t.equal(await figure('(select sum(events) from hooks.activity)'), ENTRIES, 'counted once each')
  t.match(await healthOf(server.hooks), { broker: 'ok' })
})

function numbers() {
  return Array.from({ length: ENTRIES }, (_, at) => at + 1)
}

function payloadOf(n: number) {
  return JSON.stringify({ n, filler: 'x'.repeat(n % 100) })
}

/** Adds the entries in order under ids of their own: adding one again is refused by Redis. */
async function addAll(redis: Redis) {
  for (let first = 1; first <= ENTRIES; first += CHUNK) {
    const chunk = numbers().slice(first - 1, first - 1 + CHUNK)
    await until(
      async () => {
        await Promise.all(chunk.map((n) => add(redis, n)))
        return true
      },
      'Redis to take entries',
      LONG_MS,
    )
  }
}

async function add(redis: Redis, n: number) {
  try {
    await redis.send('XADD', STREAM, `${n}-0`, 'payload', payloadOf(n), 'event_type', 'made')
  } catch (error) {
    // It was added before its answer was lost.
    if (!String(error).includes('equal or smaller')) throw error
  }
}

const ROUNDS = 10
/** Latest moment of a crash, after the first acknowledgement of its round. */
const LATEST_MS = 1_500
/** A claim of a dead process ends after 15 s. */
const ARRIVAL_MS = 120_000

await onPostgres(t, 'kill -9 while events are delivered onwards', async (t, backend) => {
  const sender = createSender()
  const env = {
    ...(await backend.env(t)),
    ...sender.env,
    HOOKS_REPLAY_TARGETS: '127.0.0.1',
  }
  let isDown = false
  const receiver = await startReceiver(t, (_, response) => {
    if (isDown) response.destroy()
    else response.writeHead(204).end()
  })
  const acked: number[] = []
  for (let round = 1; round <= ROUNDS; round++) {
    const server = await startServerProcess(t, { services: ['hooks'], env })
    if (round === 1) {
      await addDestination(server.hooks, 'any', `${receiver.url}/any`)
      await addDestination(server.hooks, 'row', `${receiver.url}/row`, { ordered: true })
    }
    const base = () => server.hooks
    const load = startLoad(t, { base, sender, senders: 4, restMs: 10 })
    await until(() => load.acked.length > 0, 'the first acknowledgement')
    const crash = randomInt(LATEST_MS)
    isDown = round % 2 === 0
    await pause(crash / 2)
    isDown = false
    await pause(crash / 2)
    await Promise.all([server.kill(), load.stop()])
    acked.push(...load.acked.map(({ id }) => id))
  }

  const server = await startServerProcess(t, { services: ['hooks'], env })
  const last = startLoad(t, { base: () => server.hooks, sender, senders: 1 })
  await until(() => last.acked.length > 0, 'an event after the last crash')
  await last.stop()
  acked.push(...last.acked.map(({ id }) => id))
  const got = (path: string) => receiver.received.filter((one) => one.path === path).map(eventOf)
  const missing = (path: string) => {
    const ids = new Set(got(path))
    return acked.filter((id) => !ids.has(id))
  }
  // Those that failed twice would wait for minutes.
  async function isOver(name: string) {
    await retry(server.hooks, name)
    const { waiting, position } = await listed(server.hooks, name)
    return waiting === 0 && position >= Math.max(...acked)
  }
  for (const name of ['any', 'row']) {
    await until(() => isOver(name), `all of ${name}`, ARRIVAL_MS, 1_000)
    await untilListed(server.hooks, name, { waiting: 0, dead: 0, gap: 0, disabled_by: null })
    t.same(missing(`/${name}`), [], `all of ${acked.length} acknowledged came to ${name}`)
  }
  const row = got('/row')
  const early = row.filter((id, at) => id < (row[at - 1] ?? 0))
  t.same(early, [], 'in order: none comes after one behind it, not even a repeat')
})
