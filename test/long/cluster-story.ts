import { t, type Test } from 'tap'
import { addDestination, eventOf, untilListed } from '../helpers/destinations.ts'
import { createSender } from '../helpers/deliveries.ts'
import { linksServer } from '../helpers/links.ts'
import { assertKept, assertRefusals, startServiceLoad, type ServiceLoad } from './service-load.ts'
import { inventoryFile } from '../helpers/ops.ts'
import { run } from '../helpers/postgres.ts'
import { follow, startReceiver } from '../helpers/replays.ts'
import { startServerProcess } from '../helpers/server-process.ts'
import { until } from '../helpers/until.ts'
import { startCluster, type Fault, type PatroniCluster } from './cluster.ts'

// The promise: two instances on a cluster of three PostgreSQL, one of them through HAProxy and one with the hosts in
// its address. Whatever happens to the leader under load, nothing acknowledged is lost, and work goes on within
// 30 s of the new leader. cluster.test.ts starts this file.

const FAULTS: readonly Fault[] = ['killed', 'stopped', 'cut off']
const BOUND_S = 30
const PATIENCE_MS = 180_000

await t.test('the leader is lost under load', { timeout: 1_800_000 }, async (t) => {
  const cluster = await startCluster(t)
  const sender = createSender()
  const check = { type: 'command', name: 'true', argv: ['/bin/true'], every: '10s' }
  const inventory = { services: [{ name: 'host', checks: [check] }] }
  const receiver = await startReceiver(t)
  const env = {
    ...sender.env,
    OPS_INVENTORY: await inventoryFile(t, inventory),
    HOOKS_REPLAY_TARGETS: receiver.url.slice('http://'.length),
  }
  const start = (DATABASE_URL: string) => startServerProcess(t, { env: { ...env, DATABASE_URL } })
  const one = await start(cluster.url)
  const two = await start(cluster.direct)
  const { token } = await linksServer(one, { DATABASE_URL: cluster.url }).user('ann')

  await addDestination(one.hooks, 'target', `${receiver.url}/`)
  const streams = [one, two].map(({ hooks }) => follow(t, `${hooks}/events`))
  const loads = [one, two].map((server) =>
    startServiceLoad(t, { server: () => server, sender, token }),
  )
  await allGoOn(loads)

  for (const fault of FAULTS) {
    const figures = await loseLeader(t, cluster, loads, fault)
    t.comment(`${fault}: ${JSON.stringify(figures)}`)
    await checksGoOn(cluster)
  }
  await Promise.all(loads.map((load) => load.stop()))

  const look = (text: string) => run(cluster.url, text)
  for (const load of loads) {
    assertRefusals(t, load)
    await assertKept(t, { ...load, deliveries: withAllSent(load, loads) }, look)
  }
  const ids = (await look('select id from hooks.events order by id')).map(({ id }) => Number(id))
  for (const stream of streams) {
    await until(() => stream.ids.at(-1) === ids.at(-1), 'a stream to have the last event', 30_000)
    t.same(stream.ids, ids, 'a stream has every event once and in order')
  }
  await untilListed(one.hooks, 'target', { waiting: 0, dead: 0, gap: 0 }, PATIENCE_MS)
  const delivered = new Set(receiver.received.map(eventOf))
  t.same(
    [...delivered].toSorted((a, b) => a - b),
    ids,
    'the destination has every event',
  )
  // A start may wait for the end before it, for as long as a statement may take.
  const overlaps = await look(
    `select a.id, b.id as other from ops.sessions a join ops.sessions b on a.id < b.id
      where b.started_at < coalesce(a.ended_at, 'infinity') - interval '5 s'`,
  )
  t.same(overlaps, [], 'one session ran at a time')
  for (const { logs } of [one, two]) {
    t.notMatch(logs().join('\n'), /handler failed|unhandled|TypeError|runner broke/)
  }
  t.comment(
    JSON.stringify({
      events: ids.length,
      received: receiver.received.length,
      refused: loads.map(({ deliveries }) => deliveries.refused.length),
      streams: streams.map(({ connections }) => connections),
    }),
  )
})

/** Breaks the leader, waits until all goes on with the next one, and mends it; gives the figures. */
async function loseLeader(
  t: Test,
  cluster: PatroniCluster,
  loads: readonly ServiceLoad[],
  fault: Fault,
) {
  const before = await cluster.leader()
  if (before === undefined) throw new Error('the cluster has no leader')
  const began = performance.now()
  const seconds = () => Math.round((performance.now() - began) / 100) / 10
  const mend = before.break(fault)
  const next = await until(
    async () => {
      const leader = await cluster.leader()
      return leader !== undefined && leader !== before && leader
    },
    `a new leader after "${fault}"`,
    PATIENCE_MS,
    200,
  )
  const leader_s = seconds()
  const each = await Promise.all(
    loads.map(async (load) => {
      await allGoOn([load])
      return seconds()
    }),
  )
  for (const writing_s of each) {
    t.ok(writing_s - leader_s <= BOUND_S, `writing ${writing_s - leader_s} s after the new leader`)
  }
  mend()
  await cluster.healthy()
  const [haproxy_s, hosts_s] = each
  return { old: before.name, new: next.name, leader_s, haproxy_s, hosts_s, whole_s: seconds() }
}

/** Waits until each load has more acknowledged of all that it makes. */
async function allGoOn(loads: readonly ServiceLoad[]) {
  const counts = () =>
    loads.flatMap(({ deliveries, acked }) => [
      deliveries.acked.length,
      acked.links.length,
      acked.memories.length,
    ])
  const before = counts()
  await until(() => counts().every((count, at) => count > (before[at] ?? 0)), 'all work', 120_000)
}

/** Waits for a look that began after now. */
async function checksGoOn({ url }: PatroniCluster) {
  const [now] = await run(url, 'select clock_timestamp() as at')
  const text = "select 1 from ops.checks where name = 'true' and state = 'ok' and checked_at > $1"
  const looked = async () => (await run(url, text, [now?.['at']])).length === 1
  await until(looked, 'the check to be made', 60_000, 500)
}

/** What one load was acknowledged, beside what both have sent. */
function withAllSent(load: ServiceLoad, loads: readonly ServiceLoad[]) {
  const sent = new Map(loads.flatMap(({ deliveries }) => [...deliveries.sent]))
  return { ...load.deliveries, sent }
}
