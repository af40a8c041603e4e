import { Agent } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { createSender, send } from '../test/helpers/deliveries.ts'
import { openStream } from '../test/helpers/sse.ts'
import { startBare } from './helpers/bare.ts'
import { freshDatabase } from './helpers/database.ts'
import { atLeast, atMost, median, type Figure, type Owner, type Part } from './helpers/measure.ts'
import { cpuSeconds, portOf, startBenchServer } from './helpers/server.ts'
import { openStreamClients, type StreamClients } from './helpers/stream-clients.ts'

const CLIENTS = 1_000
const ROUNDS = 5
/** Events come at this rate, whether those before have arrived or not. */
const PER_SECOND = 100
const SECONDS = 4
/** As fast as the clients receive: this many events at most are on their way to one of them. */
const ON_THEIR_WAY = 16
const EVENTS_EACH = 30
/** A round that takes longer has lost events. */
const LONGEST_MS = 120_000
const BOUND = 0.8
const P99_MS = 250
/** The type of the events: a byte that stands nowhere else in the stream. */
const MARK = '~'

/** One of the two servers, with clients of its own. */
interface Side {
  readonly pid: number
  readonly clients: StreamClients
  readonly post: (agent: Agent) => Promise<void>
}

/** `perSecond` is frames that clients received, `cost` µs of the server's processor for each, `p99` ms of delay. */
type Round = { readonly perSecond: number; readonly cost: number; readonly p99: number }
type Send = (side: Side, agent: Agent) => Promise<number>
type Rounds = Readonly<Record<'bare' | 'gatehouse', Round[]>>

/**
 * 1,000 clients of `/events` beside 1,000 of a bare loop of `res.write` of the same bytes, in alternating rounds. The
 * ratio is of frames that clients received in a second of the clock: at 100 events a second, and as fast as they
 * receive. Both servers get the same POSTs, which one verifies, stores and reads again; events that come while it
 * writes go out together, which a bare loop does not do.
 */
export const streams: Part = {
  name: 'streams',
  async run(owner: Owner): Promise<readonly Figure[]> {
    const url = await freshDatabase(owner)
    const sender = createSender()
    const server = await startBenchServer(owner, { ...sender.env, DATABASE_URL: url })
    async function post(base: string, agent = new Agent()): Promise<void> {
      const { status } = await send(agent, base, await sender.delivery({ type: MARK }))
      if (status !== 202) throw new Error(`expected 202, was ${status}`)
    }
    async function sideOf(base: string, pid: number): Promise<Side> {
      const target = { port: portOf(base), path: '/events', clients: CLIENTS }
      const clients = await openStreamClients(owner, { ...target, mark: MARK.charCodeAt(0) })
      return { pid, clients, post: (agent) => post(base, agent) }
    }

    await post(server.hooks)
    const bare = await startBare(owner, 'bare-stream.ts', await frameOf(owner, server.hooks))
    const sides = {
      bare: await sideOf(`http://127.0.0.1:${bare.port}`, bare.pid),
      gatehouse: await sideOf(server.hooks, server.pid),
    }
    const [steady, fast]: [Rounds, Rounds] = [
      { bare: [], gatehouse: [] },
      { bare: [], gatehouse: [] },
    ]
    for (let round = -1; round < ROUNDS; round++) {
      for (const name of ['bare', 'gatehouse'] as const) {
        const made = [
          await measure(sides[name], sendSteadily),
          await measure(sides[name], sendFast),
        ]
        // The first round lets the code become fast: it is made, not measured.
        if (round < 0) continue
        steady[name].push(...made.slice(0, 1))
        fast[name].push(...made.slice(1))
      }
    }
    const p99 = median(steady.gatehouse.map((round) => round.p99))
    return [
      ...figuresOf(`${PER_SECOND} events/s`, steady),
      { name: 'p99 bare', value: median(steady.bare.map((round) => round.p99)), unit: 'ms' },
      atMost('p99 Gatehouse', p99, P99_MS, 'ms'),
      ...figuresOf('as fast as received', fast),
    ]
  },
}

/** The text of an event in the stream, which the bare server sends again and again. */
async function frameOf(owner: Owner, base: string): Promise<string> {
  const stream = await openStream(owner, `${base}/events?last_event_id=0`)
  const { id, event, data } = await stream.until((message) => message.event === 'event-received')
  stream.close()
  return `id: ${id}\nevent: ${event}\ndata: ${data}\n\n`
}

async function measure(side: Side, sendEvents: Send): Promise<Round> {
  side.clients.delay(1)
  const [started, cpu] = [performance.now(), cpuSeconds(side.pid)]
  // Connections of the round before may just be closed for their rest.
  const agent = new Agent({ keepAlive: true })
  const missing = pause(LONGEST_MS, undefined, { ref: false }).then(() => {
    throw new Error(`clients still miss events after ${LONGEST_MS} ms`)
  })
  const sent = await Promise.race([sendEvents(side, agent), missing]).finally(() =>
    agent.destroy(),
  )
  const frames = sent * CLIENTS
  const seconds = (performance.now() - started) / 1_000
  const cost = ((cpuSeconds(side.pid) - cpu) * 1e6) / frames
  return { perSecond: frames / seconds, cost, p99: side.clients.delay(0.99) }
}

async function sendSteadily({ clients, post }: Side, agent: Agent): Promise<number> {
  const events = Array.from({ length: PER_SECOND * SECONDS }, async (_, n) => {
    await pause((n * 1_000) / PER_SECOND)
    await Promise.all([clients.send(), post(agent)])
  })
  await Promise.all(events)
  return events.length
}

async function sendFast({ clients, post }: Side, agent: Agent): Promise<number> {
  const lanes = Array.from({ length: ON_THEIR_WAY }, async () => {
    for (let n = 0; n < EVENTS_EACH; n++) await Promise.all([clients.send(), post(agent)])
  })
  await Promise.all(lanes)
  return ON_THEIR_WAY * EVENTS_EACH
}

function figuresOf(what: string, rounds: Rounds): readonly Figure[] {
  const of = (name: keyof Rounds, part: keyof Round): number =>
    median(rounds[name].map((round) => round[part]))
  const ratio = of('gatehouse', 'perSecond') / of('bare', 'perSecond')
  return [
    { name: `${what}: bare (median)`, value: of('bare', 'perSecond'), unit: '/s' },
    { name: `${what}: Gatehouse (median)`, value: of('gatehouse', 'perSecond'), unit: '/s' },
    atLeast('Gatehouse / bare', ratio, BOUND),
    { name: 'processor, bare', value: of('bare', 'cost'), unit: 'µs a frame' },
    { name: 'processor, Gatehouse', value: of('gatehouse', 'cost'), unit: 'µs a frame' },
  ]
}
