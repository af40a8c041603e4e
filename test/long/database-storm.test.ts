import { setTimeout as pause } from 'node:timers/promises'
import { t } from 'tap'
import { createSender } from '../helpers/deliveries.ts'
import { extent } from '../helpers/program.ts'
import { follow } from '../helpers/replays.ts'
import { request } from '../helpers/http.ts'
import { leadsTo, linksServer, makeLink } from '../helpers/links.ts'
import { inventoryFile } from '../helpers/ops.ts'
import { ownPostgres, run } from '../helpers/postgres.ts'
import { newSeed, randomOf, until } from '../helpers/until.ts'
import { startServerProcess } from '../helpers/server-process.ts'
import { startVisits } from '../helpers/load.ts'
import { assertKept, assertRefusals, startServiceLoad } from './service-load.ts'
import { startTcpProxy, type TcpProxy } from '../helpers/tcp-proxy.ts'

// The promise: whatever the network does between Gatehouse and PostgreSQL, in any order, nothing acknowledged is
// lost, nobody is told anything but to come back, no click is lost or counted twice, streams have no hole and no
// repeat, and all goes on by itself without a connection too many.

const ROUNDS = extent({ short: 12, long: 300 })
/** Statements, transactions and LISTEN. */
const CONNECTIONS = 10 + 10 + 1
/** A connection that is lost is known by the deadline of its statement; the server is told on another one. */
const AGAIN_MS = 30_000

const seed = newSeed()
const random = randomOf(seed)

const faults: Record<string, (proxy: TcpProxy) => void> = {
  reset: (proxy) => proxy.reset(),
  'ended by the server': (proxy) => proxy.end('to-client'),
  'ended by us': (proxy) => proxy.end('to-server'),
  'ended on both sides': (proxy) => proxy.end(),
  'cut in an answer': (proxy) => proxy.cutAfter(random(400)),
  stalled: (proxy) => proxy.stall(),
  'answers stalled': (proxy) => proxy.stall('to-client'),
  'statements stalled': (proxy) => proxy.stall('to-server'),
  'stalled, then reset'(proxy) {
    proxy.stall()
    setTimeout(() => proxy.reset(), random(200))
  },
  'in pieces': (proxy) => proxy.split(random, 1 + random(40)),
  'refused and reset'(proxy) {
    proxy.refuse()
    proxy.reset()
  },
  'hung up and reset'(proxy) {
    proxy.refuse('ended')
    proxy.reset()
  },
  // Found by the deadline of a statement only.
  ...extent({ short: {}, long: { lost: (proxy: TcpProxy) => proxy.lose() } }),
}

await t.test(`random faults of the network under load, seed ${seed}`, async (t) => {
  const cluster = await ownPostgres(t)
  const url = await cluster.createDatabase()
  const proxy = await startTcpProxy(t, url)
  const sender = createSender()
  const OPS_INVENTORY = await inventoryFile(t, { services: [] })
  const env = { ...sender.env, OPS_INVENTORY, DATABASE_URL: proxy.through(url) }
  const server = await startServerProcess(t, { env })
  const ann = await linksServer(server, { DATABASE_URL: url }).user('ann')
  for (const slug of ['kept-1', 'kept-2']) {
    await makeLink(ann, slug)
    await leadsTo(server.links, `/${slug}`)
  }
  const stream = follow(t, `${server.hooks}/events`)
  const load = startServiceLoad(t, { server: () => server, sender, token: ann.token })
  const visits = startVisits(server.links, ['/kept-1', '/kept-2'], { clients: 2 })
  const bases = [server.hooks, server.links, server.ops]
  const healthy = async () => {
    const answers = await Promise.all(bases.map((base) => request(`${base}/healthz`)))
    return answers.every(({ status }) => status === 200)
  }
  const acked = () => [
    load.deliveries.acked.length,
    load.acked.links.length,
    load.acked.memories.length,
    load.acked.sessions.length,
  ]

  const names = Object.keys(faults)
  for (let round = 0; round < ROUNDS; round++) {
    // Each at least once, then in any order.
    const name = names[round < names.length ? round : random(names.length)] ?? ''
    faults[name]?.(proxy)
    await pause(random(500))
    await proxy.pass()
    const before = acked()
    await until(healthy, `good health after "${name}"`, AGAIN_MS)
    await until(
      () => acked().every((count, n) => n === 3 || count > (before[n] ?? 0)),
      `all to be served again after "${name}"`,
      AGAIN_MS,
    )
  }
  await load.stop()
  await visits.stop()
  assertRefusals(t, load)
  t.same([visits.others, visits.unanswered], [[], 0], `${visits.total} visits led on`)

  const newest = Math.max(...load.deliveries.acked.map(({ id }) => id))
  await until(() => stream.ids.at(-1) === newest, 'the newest event on the stream')
  await stream.stop()
  t.same(
    stream.ids,
    [...new Set(stream.ids)].toSorted((a, b) => a - b),
    'each event once and in order',
  )
  const seen = new Set(stream.ids)
  t.same(
    load.deliveries.acked.filter(({ id }) => !seen.has(id)),
    [],
    'none is missing',
  )

  const running = "select id from ops.sessions where status = 'running'"
  await until(async () => (await run(url, running)).length === 0, 'no session to run', 45_000)
  const ours = `select pid from pg_stat_activity
    where datname = current_database() and application_name like 'gatehouse %'`
  // That one without work is lost without a word is known when it has work again.
  const known = () => extent({ short: proxy.open, long: CONNECTIONS })
  await until(
    async () => (await run(url, ours)).length <= Math.min(CONNECTIONS, known()),
    `${CONNECTIONS} connections at most, and none that is known to be lost`,
  )
  t.match(await server.stop(), { code: 0 })
  await assertKept(t, load, (text) => run(url, text))
  const clicks = await run(
    url,
    `select '/' || slug as path, sum(c.clicks)::integer as n
       from links.clicks c join links.links on id = link_id group by 1`,
  )
  for (const { path, n } of clicks) {
    t.equal(n, (visits.redirected.get(path) ?? 0) + 1, `clicks of ${path}`)
  }
  t.equal(clicks.length, 2)
  const bad = /handler failed|unhandled|TypeError|runner broke/
  t.same(
    server.logs().filter((line) => bad.test(line)),
    [],
    'no failure in the log',
  )
})
