import { request } from 'node:http'
import type { IncomingMessage } from 'node:http'
import { createParser } from 'eventsource-parser'
import { t } from 'tap'
import type { Test } from 'tap'
import { backends } from '../helpers/backends.ts'
import type { Backend } from '../helpers/backends.ts'
import { createSender, sendAll } from '../helpers/deliveries.ts'
import type { Acked } from '../helpers/deliveries.ts'
import { request as ask } from '../helpers/http.ts'
import { startServer } from '../helpers/server.ts'
import { until } from '../helpers/until.ts'

const CLIENTS = 200
const EVENTS = 2_000
/** Sent at a time; at most two portions stay unseen, because a client over 1,000 behind has a gap. */
const PORTION = 400
/** Chance that a client goes away instead of taking what has just arrived. */
const CUT = 0.05
/** Numbers of ids after which every client goes away at the latest. */
const CUTS_AT = [200, 900, 1_600]

/** A client that goes away at random moments and comes back at once, until it is stopped. */
type Follower = {
  readonly ids: readonly number[]
  readonly gaps: readonly string[]
  readonly cuts: number
  stop(): void
}

const [embedded, postgres] = backends

const setUps: readonly { name: string; backend: Backend; servers: number }[] = [
  { name: 'embedded', backend: embedded, servers: 1 },
  { name: 'postgres', backend: postgres, servers: 1 },
  { name: 'postgres, two servers', backend: postgres, servers: 2 },
]

for (const { name, backend, servers } of setUps) {
  await t.test(`each client sees each event once and in order (${name})`, async (t) => {
    const sender = createSender()
    const env = { ...(await backend.env(t)), ...sender.env }
    const bases: string[] = []
    for (let n = 0; n < servers; n++) {
      // The data directory is the server's own when there is another database.
      const { DATABASE_URL: url } = env
      const own = url === undefined ? env : { ...sender.env, DATABASE_URL: url }
      bases.push((await startServer(t, { services: ['hooks'], env: own })).hooks)
    }
    const followers = Array.from({ length: CLIENTS }, (_, n) => follow(t, bases, n))
    await until(async () => (await connected(bases)) === CLIENTS, 'all clients to be connected')
    const slowest = (): number => Math.min(...followers.map((client) => client.ids.length))
    const acked: Acked[] = []
    while (acked.length < EVENTS) {
      await until(() => slowest() >= acked.length - PORTION, 'the slowest client', 30_000)
      acked.push(...(await sendAll(t, bases, await sender.deliveries(PORTION))))
    }
    const ids = acked.map(({ id }) => id).toSorted((a, b) => a - b)
    const last = ids.at(-1)
    await until(
      () => followers.every((client) => client.ids.at(-1) === last),
      'every client to have the last event',
      30_000,
    ).catch((error: unknown) => t.fail(String(error)))
    for (const client of followers) client.stop()

    t.equal(new Set(ids).size, EVENTS, 'an id for each delivery')
    const wrong = followers.flatMap((client, n) => differences(client, ids, n))
    t.same(wrong, [], 'every id once, in ascending order, by every client')
    const cuts = followers.map((client) => client.cuts)
    t.ok(Math.min(...cuts) >= CUTS_AT.length, 'every client went away several times')
    t.comment(`${cuts.reduce((sum, count) => sum + count, 0)} connections were cut`)
    await until(async () => (await connected(bases)) === 0, 'no client to be left')
  })
}

function follow(t: Test, bases: readonly string[], number: number): Follower {
  const ids: number[] = []
  const gaps: string[] = []
  let [cuts, stopped, connections] = [0, false, number]
  let current: IncomingMessage | undefined

  function connect(): void {
    // With several servers a client comes back to another one; half of them resume by query.
    const base = bases[connections++ % bases.length] ?? ''
    const last = String(ids.at(-1) ?? 0)
    const byQuery = connections % 2 === 0
    const url = `${base}/events${byQuery ? `?last_event_id=${last}` : ''}`
    const headers = { Accept: 'text/event-stream', ...(byQuery ? {} : { 'Last-Event-ID': last }) }
    const outgoing = request(url, { agent: false, headers }, (incoming) => {
      current = incoming
      // It may have been stopped on its way.
      if (stopped) incoming.destroy()
      else read(incoming)
    })
    outgoing.on('error', again)
    outgoing.end()
  }

  function read(incoming: IncomingMessage): void {
    const parser = createParser({
      onEvent({ event, id, data }) {
        if (event === 'event-received') ids.push(Number(id))
        if (event === 'gap') gaps.push(data)
      },
    })
    let due = CUTS_AT[cuts] ?? Infinity
    incoming.setEncoding('utf8').on('data', (text: string) => {
      if (incoming.destroyed) return
      // What was on its way is lost with the connection, as in real life.
      if (Math.random() < CUT || ids.length > due) {
        cuts++
        due = Infinity
        incoming.destroy()
      } else parser.feed(text)
    })
    incoming.on('error', () => undefined)
    incoming.on('close', again)
  }

  let waiting = false
  function again(): void {
    if (stopped || waiting) return
    waiting = true
    setImmediate(() => {
      waiting = false
      if (!stopped) connect()
    })
  }

  function stop(): void {
    stopped = true
    current?.destroy()
  }
  t.teardown(stop)
  connect()
  return {
    ids,
    gaps,
    get cuts() {
      return cuts
    },
    stop,
  }
}

/** What a client saw otherwise than it was stored; a few words each. */
function differences({ ids, gaps }: Follower, expected: readonly number[], n: number): string[] {
  const found = gaps.map((gap) => `client ${n}: gap ${gap}`)
  const at = expected.findIndex((id, index) => ids[index] !== id)
  if (at >= 0) found.push(`client ${n}: ${ids[at]} as number ${at}, not ${expected[at]}`)
  if (ids.length > expected.length) found.push(`client ${n}: ${ids.length} ids`)
  return found
}

/** Stream clients of all servers together, as they count them. */
async function connected(bases: readonly string[]): Promise<number> {
  let sum = 0
  for (const base of bases) {
    const { text } = await ask(`${base}/metrics`)
    sum += Number(/^gatehouse_hooks_stream_clients (\d+)$/m.exec(text)?.[1])
  }
  return sum
}
