import { setTimeout as pause } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { backends } from '../test/helpers/backends.ts'
import {
  createSender,
  keepAlive,
  send,
  sendAll,
  type Delivery,
} from '../test/helpers/deliveries.ts'
import type { FloodOrder } from './helpers/flood-worker.ts'
import { atMost, quantile, type Figure, type Owner, type Part } from './helpers/measure.ts'
import { portOf, residentBytes, startBenchServer, type BenchServer } from './helpers/server.ts'

const CLIENTS = 2
/** Of each client. */
const CONNECTIONS = 1
const PIPELINED = 60_000
const SECONDS = 15
const WARM_UP = 100_000
/** A delivery comes this often, whether the one before is answered or not: a stall is seen in full. */
const EACH_MS = 10
const P99_MS = 250
const MEMORY = 1.3
const NORMAL_WITHIN_MS = 2_000
const MEBI = 1024 * 1024

/** Deliveries while two clients send 60,000 pipelined requests at a time, each for another link that is not there. */
export const flood: Part = {
  name: 'flood',
  async run(owner: Owner): Promise<readonly Figure[]> {
    const figures: Figure[] = []
    for (const backend of backends) {
      const sender = createSender()
      const env = { ...sender.env, ...(await backend.env(owner)) }
      const server = await startBenchServer(owner, env)
      // What the process takes once it has worked is no cost of a flood.
      await sendAll(owner, [server.hooks], await sender.deliveries(WARM_UP))
      const count = (SECONDS * 1_000) / EACH_MS
      const agent = keepAlive(owner, 64)
      const deliver = (deliveries: readonly Delivery[]): Promise<Sent> =>
        deliverEach(agent, server.hooks, deliveries)
      const [before, during, after] = await Promise.all([
        sender.deliveries(count),
        sender.deliveries(count),
        sender.deliveries(1_000 / EACH_MS),
      ])
      const calm = await deliver(before)
      const resident = residentBytes(server.pid)
      const attack = startFlood(owner, server)
      const watch = watchMemory(owner, server.pid)
      const flooded = await deliver(during)
      const most = watch.stop()
      await attack.stop()
      const back = await untilNormal(server)
      const restored = await deliver(after)
      await server.stop()

      const named = (text: string): string => `${backend.name}, ${text}`
      figures.push(
        { name: named('p99 of deliveries without a flood'), value: calm.p99, unit: 'ms' },
        {
          name: named('answers to the flood: 404'),
          value: attack.answered(4) / SECONDS,
          unit: '/s',
        },
        {
          name: named('answers to the flood: 503'),
          value: attack.answered(5) / SECONDS,
          unit: '/s',
        },
        atMost(named('deliveries refused meanwhile'), flooded.refused, 0, ''),
        atMost(named('p99 of deliveries'), flooded.p99, P99_MS, 'ms'),
        { name: named('longest'), value: flooded.longest, unit: 'ms' },
        { name: named('resident before'), value: resident / MEBI, unit: 'MiB' },
        { name: named('most resident'), value: most / MEBI, unit: 'MiB' },
        atMost(named('the ratio'), most / resident, MEMORY, '×'),
        atMost(named('until normal again'), back, NORMAL_WITHIN_MS, 'ms'),
        { name: named('p99 of deliveries afterwards'), value: restored.p99, unit: 'ms' },
      )
    }
    return figures
  },
}

/** How a round of deliveries was answered. */
interface Sent {
  readonly p99: number
  readonly longest: number
  readonly refused: number
}

async function deliverEach(
  agent: ReturnType<typeof keepAlive>,
  base: string,
  deliveries: readonly Delivery[],
): Promise<Sent> {
  const started = performance.now()
  const answers = deliveries.map(async (delivery, n) => {
    await pause(Math.max(0, started + n * EACH_MS - performance.now()))
    const sent = performance.now()
    return send(agent, base, delivery).catch(() => ({ status: 0, ms: performance.now() - sent }))
  })
  const all = await Promise.all(answers)
  const times = all.map(({ ms }) => ms)
  return {
    p99: quantile(times, 0.99),
    longest: Math.max(...times),
    refused: all.filter(({ status }) => status !== 202).length,
  }
}

function startFlood(
  owner: Owner,
  server: BenchServer,
): { answered(digit: number): number; stop(): Promise<void> } {
  const answered = new Int32Array(new SharedArrayBuffer(4 * 6))
  const order: FloodOrder = {
    port: portOf(server.links),
    pipelined: PIPELINED,
    connections: CONNECTIONS,
    answered,
  }
  const clients = Array.from(
    { length: CLIENTS },
    () => new Worker(new URL('./helpers/flood-worker.ts', import.meta.url), { workerData: order }),
  )
  async function stop(): Promise<void> {
    await Promise.all(clients.map((client) => client.terminate()))
  }
  owner.teardown(stop)
  return { stop, answered: (digit) => answered[digit] ?? 0 }
}

function watchMemory(owner: Owner, pid: number): { stop(): number } {
  let most = 0
  const timer = setInterval(() => (most = Math.max(most, residentBytes(pid))), 100)
  owner.teardown(() => clearInterval(timer))
  return {
    stop() {
      clearInterval(timer)
      return most
    },
  }
}

/** Milliseconds until a link that is not there is answered within 100 ms again. */
async function untilNormal({ links }: BenchServer): Promise<number> {
  const ended = performance.now()
  for (;;) {
    const asked = performance.now()
    const { status } = await fetch(`${links}/unknown-too`)
    if (status === 404 && performance.now() - asked < 100) return asked - ended
  }
}
