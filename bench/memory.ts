import { setTimeout as pause } from 'node:timers/promises'
import { temporaryFolder } from '../test/helpers/owner.ts'
import { anonymousKib, childrenOf } from '../test/helpers/process-figures.ts'
import { createSender } from '../test/helpers/deliveries.ts'
import { freshDatabase } from './helpers/database.ts'
import { atMost, median, type Figure, type Owner, type Part } from './helpers/measure.ts'
import {
  cpuSeconds,
  portOf,
  residentBytes,
  startBenchServer,
  type BenchServer,
} from './helpers/server.ts'
import { loadRound } from './helpers/wrk.ts'

const FEW = 10_000
const SOME = 100_000
const MANY = 1_000_000
const CONNECTIONS = 64
const SERVICES = ['hooks', 'links', 'ops'] as const
const BOUND = 1.3
/** The process rests when it took less than 2 % of a processor for ten seconds in a row. */
const REST = { seconds: 10, processor: 0.02 }
const LONGEST_WAIT_S = 120
const SAMPLES = 11
const MEBI = 1024 * 1024
/** After this the process has collected what its work has left (`collectWhenIdle()`). */
const IDLE_MS = 60_000
/** Of the memory after 100,000 events by that before. */
const WORKED_BOUND = 1.5

/**
 * Memory of its own after an idle minute, of all three services and their child processes; then resident memory of the server after 10,000 and after 1,000,000 signed deliveries at 64 connections. It is the median
 * of 11 samples, a second apart, once the process rests: what is collected only when there is work again counts.
 */
export const memory: Part = {
  name: 'memory',
  async run(owner: Owner): Promise<readonly Figure[]> {
    const atRest = await restFigures(owner)
    const url = await freshDatabase(owner)
    const sender = createSender()
    const server = await startBenchServer(owner, { ...sender.env, DATABASE_URL: url })
    const order = await ingestOrder(sender, server)
    let sent = 0
    async function sendUntil(count: number, seconds: number): Promise<number> {
      while (sent < count) sent += (await loadRound({ ...order, seconds })).answered
      return settled(server.pid)
    }

    const fresh = await settled(server.pid)
    const [few, fewSent] = [await sendUntil(FEW, 1), sent]
    const [many, manySent] = [await sendUntil(MANY, 10), sent]
    return [
      ...atRest,
      { name: 'resident after the start', value: fresh / MEBI, unit: 'MiB' },
      { name: `resident after ${fewSent} deliveries`, value: few / MEBI, unit: 'MiB' },
      { name: `resident after ${manySent}`, value: many / MEBI, unit: 'MiB' },
      atMost('the ratio', many / few, BOUND, '×'),
    ]
  },
}

async function restFigures(owner: Owner): Promise<readonly Figure[]> {
  const sender = createSender()
  const data = { GATEHOUSE_DATA_DIR: await temporaryFolder(owner) }
  const cases = [
    { name: 'embedded, first start', most: 220, env: data },
    { name: 'embedded', most: 160, env: data },
    { name: 'PostgreSQL server', most: 60, env: { DATABASE_URL: await freshDatabase(owner) } },
  ]
  const figures: Figure[] = []
  for (const { name, most, env } of cases) {
    const server = await startBenchServer(owner, { ...sender.env, ...env }, SERVICES)
    await pause(IDLE_MS)
    const own = ownMib(server.pid)
    figures.push(atMost(`own memory, ${name}`, own, most, 'MiB'))
    if (name !== 'embedded, first start') {
      const order = await ingestOrder(sender, server)
      let sent = 0
      while (sent < SOME) sent += (await loadRound({ ...order, seconds: 2 })).answered
      await pause(IDLE_MS)
      const worked = ownMib(server.pid)
      figures.push({ name: `after ${sent} deliveries`, value: worked, unit: 'MiB' })
      figures.push(atMost('the ratio', worked / own, WORKED_BOUND, '×'))
    }
    await server.stop()
  }
  return figures
}

/** Memory of a server and its child processes that no file stands behind. */
export function ownMib(pid: number): number {
  return [pid, ...childrenOf(pid)].reduce((sum, one) => sum + anonymousKib(one), 0) / 1024
}

/** Signed deliveries of 200 bytes, each with an id of its own. */
async function ingestOrder(sender: ReturnType<typeof createSender>, server: BenchServer) {
  const { body, headers } = await sender.delivery({ size: 200 })
  const { 'X-CodeHost-Delivery': _, ...others } = headers
  const lines = [
    'POST /webhooks/code_host HTTP/1.1',
    'Host: 127.0.0.1',
    ...Object.entries(others).map(([name, value]) => `${name}: ${value}`),
    `Content-Length: ${Buffer.byteLength(body)}`,
  ]
  const head = `${lines.join('\r\n')}\r\nX-CodeHost-Delivery: `
  return {
    port: portOf(server.hooks),
    connections: CONNECTIONS,
    requests: [{ head, tail: `\r\n\r\n${body}` }],
    expect: 'HTTP/1.1 202',
  }
}

async function settled(pid: number): Promise<number> {
  let [waited, quiet] = [0, 0]
  while (quiet < REST.seconds) {
    if (waited++ > LONGEST_WAIT_S) throw new Error(`the server took no rest in ${waited} s`)
    const before = cpuSeconds(pid)
    await pause(1_000)
    quiet = cpuSeconds(pid) - before < REST.processor ? quiet + 1 : 0
  }
  const samples: number[] = []
  for (let n = 0; n < SAMPLES; n++) {
    samples.push(residentBytes(pid))
    await pause(1_000)
  }
  return median(samples)
}
