import { t, type Test } from 'tap'
import { openForward } from '../fixtures/forward-setup.ts'
import { allServed, startVisits } from '../helpers/load.ts'
import { postgres } from '../helpers/backends.ts'
import {
  brokenOf,
  createSender,
  lostOf,
  metricOf,
  sendAll,
  startLoad,
  storedEvents,
} from '../helpers/deliveries.ts'
import { follow, startReceiver } from '../helpers/replays.ts'
import { request } from '../helpers/http.ts'
import {
  leadsTo,
  linksServer,
  longestTarget,
  makeLink,
  type Caller,
  type Link,
} from '../helpers/links.ts'
import { FORWARDER, startNginx, type Nginx, type Ports } from '../deploy/nginx.ts'
import {
  beginByHand,
  endByHand,
  ended,
  inventoryFile,
  opsServer,
  storeLines,
} from '../helpers/ops.ts'
import { freePort } from '../helpers/owner.ts'
import type { Env } from '../helpers/program.ts'
import { startServerProcess, type ServerProcess } from '../helpers/server-process.ts'
import { until } from '../helpers/until.ts'

const BETWEEN = 50

await t.test('two instances are one to whoever comes through nginx', async (t) => {
  const sender = createSender()
  const OPS_INVENTORY = await inventoryFile(t, { services: [] })
  const env = { ...(await postgres.env(t)), ...sender.env, OPS_INVENTORY }
  const { one, two, nginx } = await startBoth(t, env)
  const { hooks, links } = nginx.addresses

  await t.test('a stream has the events that either has taken', async (t) => {
    // Two streams through nginx: one of each instance.
    const streams = [follow(t, `${hooks}/events`), follow(t, `${hooks}/events`)]
    await until(() => streams.every(({ connections }) => connections === 1), 'the streams')
    const bases = [one.hooks, two.hooks, hooks]
    const acked = await sendAll(t, bases, await sender.deliveries(30), 3)
    const ids = acked.map(({ id }) => id).toSorted((a, b) => a - b)
    for (const stream of streams) {
      await until(() => stream.ids.length >= ids.length, 'all events')
      t.same(stream.ids, ids)
    }
    t.same(
      await Promise.all([one, two].map((server) => clientsOf(server))),
      [1, 1],
      'nginx has given a stream to each instance',
    )
  })

  await t.test('a link that was changed by one is followed rightly by the other', async (t) => {
    const [first, second] = [linksServer(one, env), linksServer(two, env)]
    const ann = await first.user('ann')
    let link = await makeLink(ann, 'docs', { url: 'https://v0.test/' })
    for (let version = 1; version <= 10; version++) {
      const [by, from] = version % 2 === 0 ? [first, second] : [second, first]
      t.equal(await leadsTo(from.base, '/docs'), link.url, 'it is in memory')
      const url = `https://v${version}.test/`
      const put = await by.api(ann.token)<Link>('PUT', `/links/${link.id}`, { url })
      t.equal(put.status, 200)
      link = put.json
      await until(
        async () => (await leadsTo(from.base, '/docs')) === url,
        'the new address',
        1_000,
      )
      const visits = await Promise.all([1, 2, 3, 4].map(() => leadsTo(links, '/docs')))
      t.same(visits, [url, url, url, url], 'whichever nginx asks')
    }
    const { url, location } = longestTarget()
    await makeLink(ann, 'far', { url })
    t.equal(await leadsTo(links, '/far'), location, 'also to the longest address')
  })
  t.equal(nginx.errors(), '')
})

await t.test('both are restarted, one after the other, and no client sees it', async (t) => {
  const sender = createSender()
  const inventory = await inventoryFile(t, { services: [] })
  const env = { ...(await postgres.env(t)), ...sender.env, OPS_INVENTORY: inventory }
  const { one, two, restart, nginx } = await startBoth(t, env)
  const { hooks, links, ops } = nginx.addresses
  const api = linksServer({ ...one, links }, env)
  const ann = await api.user('ann')
  const link = await makeLink(ann, 'docs', { url: 'https://docs.test/' })
  await ended(opsServer(one, env))
  const session = await beginByHand(postgres, env)

  const streams = [1, 2, 3, 4].map(() => follow(t, `${hooks}/events`))
  const output = follow(t, `${ops}/sessions/${session}/stream`, ({ event }) => event === 'done')
  const target = await startReceiver(t)
  const from = hooks.replace('//', `//${FORWARDER}@`)
  // With a password it is given by the standard input.
  await openForward(t, [target.url, '--from', '-'], from).connected()
  const loads = [true, false].map((keepsConnections) =>
    startLoad(t, { base: () => hooks, sender, senders: 4, keepsConnections }),
  )
  const visits = [true, false].map((keeps) =>
    startVisits(links, ['/docs'], { clients: 2, keepsConnections: keeps }),
  )
  const changes = startChanges(t, ann, link)
  const acked = () => loads.flatMap((load) => load.acked)
  let lines = 0

  for (const which of [0, 1, 0, 1] as const) {
    const before = acked().length
    await until(() => acked().length >= before + BETWEEN, 'the load to be under way', 30_000)
    const restarted = restart(which)
    // Some while one instance is away.
    for (let n = 0; n < 10; n++) await storeLines(postgres, env, session, ++lines, 1)
    t.same(await restarted, { code: 0, signal: null })
  }
  const before = acked().length
  await until(() => acked().length >= before + BETWEEN, 'the load to go on', 30_000)
  await Promise.all([...loads, ...visits, changes].map((load) => load.stop()))
  await endByHand(postgres, env, session, 'completed')

  allServed(t, loads, visits)
  t.same(changes.others, [], 'every change is made')
  const totals = visits.map(({ total }) => total)
  t.comment({ deliveries: acked().length, visits: totals, ...changes.counts })

  const ids = acked()
    .map(({ id }) => id)
    .toSorted((a, b) => a - b)
  for (const stream of streams) {
    await until(() => stream.ids.at(-1) === ids.at(-1), 'a stream to have the last event')
    await stream.stop()
    t.same(stream.refused, [], 'each connection is a stream')
    t.ok(stream.connections > 1, 'it was ended by a restart')
    t.same(stream.ids, ids, 'it has every event once and in order')
  }
  const forwarded = () =>
    target.received.map(({ headers }) => Number(headers['x-gatehouse-event']))
  await until(() => forwarded().at(-1) === ids.at(-1), 'the last event to be forwarded', 30_000)
  // At least once: where a connection ended before the answer was noted, it comes again.
  t.same([...new Set(forwarded())], ids, 'a forwarder has every event in order')
  await until(() => output.events.at(-1)?.event === 'done', 'the end of the output')
  t.same(
    output.ids,
    Array.from({ length: lines }, (_, n) => n + 1),
    'so has that of a session',
  )
  t.same(output.refused, [])
  const stored = await storedEvents(postgres, env)
  t.same(lostOf(acked(), stored), [], `all of ${acked().length} acknowledged are there`)
  t.same(brokenOf(new Map(loads.flatMap((load) => [...load.sent])), stored), [])
  t.equal(stored.size, acked().length)
  t.notMatch([...one.logs(), ...two.logs()].join('\n'), /handler failed|"level":"error"/)
})

/** Two instances on the database of `env`, and nginx in front of them. */
async function startBoth(t: Test, env: Env) {
  const ports = [await freePorts(), await freePorts()] as const
  const start = (which: 0 | 1) => startInstance(t, env, ports[which])
  const [one, two] = await Promise.all([start(0), start(1)])
  const running = [one, two]
  const nginx: Nginx = await startNginx(t, ports)
  async function restart(which: 0 | 1) {
    const exit = await running[which]?.stop()
    running[which] = await start(which)
    return exit
  }
  return { one, two, restart, nginx }
}

async function freePorts() {
  return { hooks: await freePort(), links: await freePort(), ops: await freePort() }
}

function startInstance(t: Test, env: Env, ports: Ports) {
  const at = (port: number) => `127.0.0.1:${port}`
  const addresses = {
    HOOKS_ADDR: at(ports.hooks),
    LINKS_ADDR: at(ports.links),
    OPS_ADDR: at(ports.ops),
    GATEHOUSE_TRUSTED_PROXIES: '127.0.0.1/32',
  }
  return startServerProcess(t, { env: { ...env, ...addresses } })
}

/** How many streams of events an instance has. */
async function clientsOf({ hooks }: ServerProcess) {
  const { text } = await request(`${hooks}/metrics`)
  return metricOf(text, 'gatehouse_hooks_stream_clients') ?? 0
}

/**
 * Who changes a link and makes new ones, four at a time. What makes one is a POST, which nginx does not
 * send twice: at the instant in which an instance closes its socket it may be lost, undone.
 */
function startChanges(t: Test, { api }: Caller, { id, url }: Link) {
  const others: unknown[] = []
  let [made, repeated, stopped] = [0, 0, false]
  async function make(slug: string) {
    const first = await api('POST', '/links', { slug, url })
    if (first.status !== 502) return first
    repeated++
    return api('POST', '/links', { slug, url })
  }
  async function work(name: string) {
    while (!stopped) {
      const number = ++made
      try {
        const put = await api('PUT', `/links/${id}`, { url, title: `Title ${number}` })
        const post = await make(`${name}-${number}`)
        if (put.status !== 200 || post.status !== 201) others.push(put.text, post.text)
      } catch (error) {
        others.push(error)
      }
    }
  }
  const working = Promise.all(['ann', 'bob', 'cyd', 'dan'].map(work))
  async function stop() {
    stopped = true
    await working
  }
  t.teardown(stop)
  return {
    others,
    stop,
    get counts() {
      return { made, repeated }
    },
  }
}
