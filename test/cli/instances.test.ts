import { copyFileSync, readFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { t, type Test } from 'tap'
import { readOpenMetrics } from '../fixtures/open-metrics.ts'
import { postgres } from '../helpers/backends.ts'
import { refuseCommands, runCliProcess, runOk } from '../helpers/cli.ts'
import { brokenOf, createSender, lostOf, startLoad, storedEvents } from '../helpers/deliveries.ts'
import { eventOf } from '../helpers/destinations.ts'
import { request } from '../helpers/http.ts'
import { freePort, temporaryFolder } from '../helpers/owner.ts'
import { childrenOf } from '../helpers/process-figures.ts'
import { ENGINE_FLAGS, extent, inLongRun } from '../helpers/program.ts'
import { follow, startReceiver } from '../helpers/replays.ts'
import { startServerProcess, type ServerProcess } from '../helpers/server-process.ts'
import { until } from '../helpers/until.ts'
import { expectStatus } from '../helpers/refusals.ts'

const COUNT = extent({ short: 2, long: 3 })
const NUMBERS = ['1', '2', '3'].slice(0, COUNT)
/** Deliveries that are acknowledged between two changes, and how long each sender rests behind one. */
const BETWEEN = 30
const REST_MS = extent({ short: 100, long: 20 })

/** What the instances have logged under a message. */
function logged({ logs }: ServerProcess, msg: string) {
  return logs()
    .map((line): { msg: string; instance?: string } => JSON.parse(line))
    .filter((line) => line.msg === msg)
}

/** The process of an instance. */
function processOf({ pid }: ServerProcess, number: number) {
  const children = childrenOf(pid)
  const found = children.find((child) =>
    readFileSync(`/proc/${child}/environ`, 'utf8').includes(`GATEHOUSE_INSTANCE=${number}\0`),
  )
  if (found === undefined) throw new Error(`instance ${number} is not among ${children}`)
  return found
}

/** The metrics of all instances, as a scraper reads them. */
async function metricsOf({ hooks }: ServerProcess) {
  // A connection of its own each time: whichever instance takes it.
  const { text } = await expectStatus(200, request(`${hooks}/metrics`))
  return readOpenMetrics(text)
}

/** How many instances have answered for their metrics. */
async function answered(server: ServerProcess) {
  const samples = (await metricsOf(server)).get('gatehouse_instances')?.samples ?? []
  return samples.find(({ labels }) => labels.includes('answered'))?.value ?? 0
}

await t.test('instances share the listeners', async (t: Test) => {
  const [sender, target] = [createSender(), await startReceiver(t)]
  const env = {
    ...(await postgres.env(t)),
    ...sender.env,
    HOOKS_REPLAY_TARGETS: `127.0.0.1:${target.port}`,
  }
  await runOk(['destination', 'add', 'copy', target.url], { env })
  const flags = ['--instances', String(COUNT)]
  const services = ['hooks'] as const
  const server = await startServerProcess(t, { env, services, flags, readyMs: 120_000 })

  await t.test('the metrics are those of all, whichever is asked', async (t) => {
    for (let round = 0; round < COUNT; round++) {
      const families = await metricsOf(server)
      const samples = families.get('process_resident_memory_bytes')?.samples ?? []
      const numbers = samples.map(({ labels }) => /instance_number="(\d)"/.exec(labels)?.[1])
      t.same(numbers.toSorted(), NUMBERS)
      t.equal(await answered(server), COUNT)
    }
  })

  await t.test('one that is killed takes nothing along, and comes back', async (t) => {
    const streams = NUMBERS.map(() => follow(t, `${server.hooks}/events`))
    const base = () => server.hooks
    const loads = [true, false].map((keepsConnections) =>
      startLoad(t, { base, sender, senders: 3, keepsConnections, restMs: REST_MS }),
    )
    const acked = () => loads.flatMap((load) => load.acked)
    const underWay = async () => {
      const enough = acked().length + BETWEEN
      await until(() => acked().length >= enough, 'the load to be under way', 30_000)
    }
    await underWay()
    process.kill(processOf(server, 2), 'SIGKILL')
    await until(() => logged(server, 'instance ended').length === 1, 'its end to be told')
    t.match(logged(server, 'instance ended'), [{ instance: 2, signal: 'SIGKILL' }])
    await underWay()
    await until(async () => (await answered(server)) === COUNT, 'it to be back', 30_000, 500)
    await underWay()
    await Promise.all(loads.map((load) => load.stop()))

    const stored = await storedEvents(postgres, env)
    t.same(lostOf(acked(), stored), [], `all of ${acked().length} acknowledged are there`)
    t.same(brokenOf(new Map(loads.flatMap((load) => [...load.sent])), stored), [])
    for (const load of loads) t.same(load.refused, [], 'no delivery was refused')
    const ids = [...stored.values()].map(({ id }) => id).toSorted((a, b) => a - b)
    for (const stream of streams) {
      await until(() => stream.ids.at(-1) === ids.at(-1), 'a stream to have the last event')
      await stream.stop()
      t.same(stream.ids, ids, 'it has every event once and in order')
    }
    const got = () => new Set(target.received.map(eventOf))
    await until(() => got().size === ids.length, 'the destination to have all', 30_000)
    t.same(got(), new Set(ids))
    const takers = new Set(logged(server, 'request').map(({ instance }) => instance))
    t.same([...takers].toSorted(), NUMBERS, 'all of them have taken requests')
  })

  await t.test('SIGTERM ends all of them in order', async (t) => {
    t.same(await server.stop(), { code: 0, signal: null })
    const stopped = logged(server, 'stopped').map(({ instance }) => instance)
    t.same(stopped.toSorted(), NUMBERS)
  })
})

await inLongRun(t, 'one that can not be started takes nothing along', async (t: Test) => {
  // As when the executable is away while it is replaced.
  const folder = await temporaryFolder(t, 'node')
  const [node, away] = [join(folder, 'node'), join(folder, 'away')]
  copyFileSync(process.execPath, node)
  const server = await startServerProcess(t, {
    env: await postgres.env(t),
    program: [node, ...ENGINE_FLAGS, 'server.ts'],
    services: ['links'],
    flags: ['--instances', '2'],
    readyMs: 120_000,
  })
  const ready = () => logged(server, 'ready')
  await until(() => ready().length === 2, 'both to log it')
  renameSync(node, away)
  process.kill(processOf(server, 2), 'SIGKILL')
  const tries = () => logged(server, 'instance ended')
  await until(() => tries().length >= 3, 'two attempts to start it', 30_000)
  t.match(tries()[2], { instance: 2, error: 'ENOENT' })
  await expectStatus(200, request(`${server.links}/healthz`), 'the other one goes on')
  renameSync(away, node)
  await until(() => ready().length === 3, 'it to be back', 30_000)
  const before = tries().length
  process.kill(processOf(server, 2), 'SIGKILL')
  await until(() => tries().length > before, 'its end')
  await until(() => processOf(server, 2), 'it to start again', 30_000)
  t.same(await server.stop(), { code: 0, signal: null }, 'one that still starts is no failure')
})

await t.test('what can not be shared is refused in one line', async (t: Test) => {
  await refuseCommands(t, undefined, [
    [
      'serve --instances 2',
      1,
      'GATEHOUSE_INSTANCES is 2, and the embedded database serves one process: set DATABASE_URL',
    ],
    ['serve --instances 65', 1, 'GATEHOUSE_INSTANCES is not valid'],
  ])
})

await inLongRun(t, 'a database that is away is told once', async (t: Test) => {
  // This gets as far as to start processes.
  const env = { DATABASE_URL: `postgres://nobody@127.0.0.1:${await freePort()}/none` }
  const { code, stdout, stderr } = await runCliProcess('serve --instances 2', { env })
  t.same({ code, stdout }, { code: 1, stdout: '' })
  const told = stderr.split('\n').filter((line) => line.startsWith('gatehouse: '))
  t.equal(told.length, 1, 'once')
  t.match(told[0], 'connect ECONNREFUSED')
})
