import { createHmac } from 'node:crypto'
import { Agent, request } from 'node:http'
import { destination } from '../test/helpers/destinations.ts'
import { run } from '../test/helpers/postgres.ts'
import { until } from '../test/helpers/until.ts'
import { startBare } from './helpers/bare.ts'
import { freshDatabase } from './helpers/database.ts'
import { atLeast, median, timed, type Figure, type Owner, type Part } from './helpers/measure.ts'
import { cpuSeconds, startBenchServer } from './helpers/server.ts'

const EVENTS = 10_000
const ORDERED_EVENTS = 1_000
const ROUNDS = 5
/** Requests under way at a time, as the product has them. */
const SENDING = 64
const SECRET = 'bench-code-host-secret'
const BODY = JSON.stringify({ padding: 'x'.repeat(200) })
const BOUND = 1_000
/** What the bare client sends: signed once. */
const SIGNED = {
  'content-type': 'application/json',
  'x-hub-signature-256': `sha256=${createHmac('sha256', SECRET).update(BODY).digest('hex')}`,
}

/**
 * Events of a signed provider that wait for a destination, from switching it on until the last one is delivered and
 * recorded, to a receiver that verifies each. Beside it a bare client that posts as many bodies to the same receiver, in
 * alternating rounds; it signs once and stores nothing.
 */
export const destinations: Part = {
  name: 'destinations',
  async run(owner: Owner): Promise<readonly Figure[]> {
    const url = await freshDatabase(owner)
    const env = {
      DATABASE_URL: url,
      HOOKS_CODE_HOST_SECRET: SECRET,
      HOOKS_REPLAY_TARGETS: '127.0.0.1',
    }
    const server = await startBenchServer(owner, env, ['hooks'])
    const { port } = await startBare(owner, 'bare-receiver.ts', SECRET)
    const target = `http://127.0.0.1:${port}/`

    /** Milliseconds until this many events are delivered to a new destination. */
    async function deliver(name: string, events: number, ...flags: readonly string[]) {
      const call = async (...words: readonly string[]) => {
        const { code, stderr } = await destination(env, ...words)
        if (code !== 0) throw new Error(stderr)
      }
      await call('add', name, target, ...flags)
      await call('disable', name)
      await store(url, events)
      const ms = await timed(async () => {
        await call('enable', name)
        await until(() => isDelivered(url, name, events), `${events} events`, 120_000)
      })
      await call('remove', name)
      return ms
    }

    const rates: Record<'bare' | 'gatehouse', number[]> = { bare: [], gatehouse: [] }
    const cpu: number[] = []
    for (let round = -1; round < ROUNDS; round++) {
      const bareMs = await timed(() => postBare(owner, target))
      const before = cpuSeconds(server.pid)
      const ms = await deliver('any', EVENTS)
      // The first round lets the code become fast: it is made, not measured.
      if (round < 0) continue
      rates.bare.push((EVENTS * 1_000) / bareMs)
      rates.gatehouse.push((EVENTS * 1_000) / ms)
      cpu.push(((cpuSeconds(server.pid) - before) * 1e6) / EVENTS)
    }
    const orderedMs = await deliver('row', ORDERED_EVENTS, '--ordered')
    const ordered = (ORDERED_EVENTS * 1_000) / orderedMs
    const gatehouse = median(rates.gatehouse)
    return [
      { name: 'bare client (median)', value: median(rates.bare), unit: 'requests/s' },
      atLeast('Gatehouse (median)', gatehouse, BOUND, 'deliveries/s'),
      { name: 'Gatehouse / bare', value: gatehouse / median(rates.bare), unit: '' },
      { name: 'processor time of Node (median)', value: median(cpu), unit: 'µs a delivery' },
      { name: 'ordered', value: ordered, unit: 'deliveries/s' },
    ]
  },
}

/** Stores events as if they had been delivered, under the lock that keeps their ids in order. */
async function store(url: string, count: number): Promise<void> {
  await run(
    url,
    `insert into hooks.events (provider, event_type, trust, headers, payload, received_at)
     select 'code_host', 'push', 1, '[["Content-Type", "application/json"], ["X-GitHub-Event", "push"]]',
            convert_to($1, 'UTF8'), at.received_at
       from hooks.lock_log() at, generate_series(1, $2::integer)`,
    [BODY, count],
  )
}

async function isDelivered(url: string, name: string, count: number): Promise<boolean> {
  const text = 'select delivered from hooks.destinations where name = $1'
  const [row] = await run(url, text, [name])
  return Number(row?.['delivered']) === count
}

async function postBare(owner: Owner, target: string): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: SENDING })
  owner.teardown(() => agent.destroy())
  let left = EVENTS
  const post = () =>
    new Promise<void>((resolve, reject) => {
      const headers = { ...SIGNED, 'content-length': BODY.length }
      const outgoing = request(target, { method: 'POST', agent, headers }, (response) => {
        response.resume().on('end', resolve)
      })
      outgoing.on('error', reject).end(BODY)
    })
  async function work(): Promise<void> {
    while (left-- > 0) await post()
  }
  await Promise.all(Array.from({ length: SENDING }, work))
}
