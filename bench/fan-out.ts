import { createHmac } from 'node:crypto'
import { Agent, request } from 'node:http'
import { destination } from '../test/helpers/destinations.ts'
import { run } from '../test/helpers/postgres.ts'
import { until } from '../test/helpers/until.ts'
import { startBare } from './helpers/bare.ts'
import { freshDatabase } from './helpers/database.ts'
import { fetchPage } from './helpers/fetch-page.ts'
import { median, timed, type Figure, type Owner, type Part } from './helpers/measure.ts'
import { cpuSeconds, startBenchServer } from './helpers/server.ts'

const DESTINATIONS = 100
/** Events that wait when the destinations are switched on. */
const WAITING = 200
const ROUNDS = 3
/** Events that come one by one: each when all have the one before. */
const SINGLE = 20
/** Deliveries that each destination is owed while they are listed: as many as are counted. */
const OWED = 10_000
const LISTS = 10
const SECRET = 'bench-code-host-secret'
const BODY = JSON.stringify({ padding: 'x'.repeat(200) })

/**
 * A hundred destinations that all want each event, to one receiver that verifies each delivery: of events that
 * wait, and of one event at a time. Then the lists of these destinations, each of which is owed many deliveries.
 */
export const fanOut: Part = {
  name: 'fan-out',
  async run(owner: Owner): Promise<readonly Figure[]> {
    const url = await freshDatabase(owner)
    const env = {
      DATABASE_URL: url,
      HOOKS_CODE_HOST_SECRET: SECRET,
      HOOKS_REPLAY_TARGETS: '127.0.0.1',
    }
    const server = await startBenchServer(owner, env, ['hooks'])
    const { port } = await startBare(owner, 'bare-receiver.ts', SECRET)
    for (let n = 0; n < DESTINATIONS; n++) {
      const { code, stderr } = await destination(
        env,
        'add',
        `to-${n}`,
        `http://127.0.0.1:${port}/`,
      )
      if (code !== 0) throw new Error(stderr)
    }
    const agent = new Agent({ keepAlive: true })
    owner.teardown(() => agent.destroy())

    const waiting = await rounds(url, server.pid, ROUNDS, WAITING, async () => {
      await enableAll(url, false)
      await store(url, WAITING)
      return () => enableAll(url, true)
    })
    const single = await rounds(url, server.pid, SINGLE, 1, async () => {
      return () => post(server.hooks, agent)
    })
    await owe(url)
    return [
      { name: 'waiting events (median)', value: (WAITING * 1_000) / waiting.ms, unit: 'events/s' },
      {
        name: 'waiting events (median)',
        value: (WAITING * DESTINATIONS * 1_000) / waiting.ms,
        unit: 'deliveries/s',
      },
      { name: 'waiting events: processor time of Node', value: waiting.us, unit: 'µs a delivery' },
      { name: 'one event, until all have it (median)', value: single.ms, unit: 'ms' },
      { name: 'one event: processor time of Node', value: single.us, unit: 'µs a delivery' },
      ...(await listsOf(server.hooks, agent)),
    ]
  },
}

/** The median of a round's milliseconds, and the mean processor time of Node for a delivery. */
interface Rounds {
  readonly ms: number
  readonly us: number
}

/** Rounds of this many events to all destinations; what `prepare` gives begins the measured time. */
async function rounds(
  url: string,
  pid: number,
  count: number,
  events: number,
  prepare: () => Promise<() => Promise<unknown>>,
): Promise<Rounds> {
  const all: number[] = []
  let cpuS = 0
  for (let round = -1; round < count; round++) {
    const begin = await prepare()
    const goal = (await delivered(url)) + events * DESTINATIONS
    const before = cpuSeconds(pid)
    const ms = await timed(async () => {
      await begin()
      await until(async () => (await delivered(url)) === goal, `${goal} deliveries`, 300_000)
    })
    // The first round lets the code become fast: it is made, not measured.
    if (round < 0) continue
    all.push(ms)
    cpuS += cpuSeconds(pid) - before
  }
  return { ms: median(all), us: (cpuS * 1e6) / (count * events * DESTINATIONS) }
}

async function listsOf(base: string, agent: Agent): Promise<readonly Figure[]> {
  const figures: Figure[] = []
  for (const path of ['/destinations', '/api/v1/destinations', '/destinations/to-50']) {
    const all: number[] = []
    for (let n = 0; n < LISTS; n++) all.push(await timed(() => fetchPage(`${base}${path}`, agent)))
    const name = `${path}, ${OWED} owed to each`
    figures.push({ name: `${name} (median)`, value: median(all), unit: 'ms' })
    figures.push({ name: `${name} (longest)`, value: Math.max(...all), unit: 'ms' })
  }
  return figures
}

/** What the command does for one, for all of them at once. */
async function enableAll(url: string, enabled: boolean): Promise<void> {
  await run(
    url,
    `with changed as (
       update hooks.destinations set disabled_at = case when $1::boolean then null else now() end,
                                     disabled_by = case when $1 then null else 'operator' end
     )
     select pg_notify('hooks_config', '')`,
    [enabled],
  )
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

/** Owes each destination deliveries that wait for another try. */
async function owe(url: string): Promise<void> {
  await run(
    url,
    `insert into hooks.destination_deliveries (destination, event_id, tries, next_at)
     select d.name, n, 1, now() + interval '1 hour'
       from hooks.destinations d, generate_series(1, $1::integer) n`,
    [OWED],
  )
  await run(url, 'vacuum analyze hooks.destination_deliveries')
}

async function delivered(url: string): Promise<number> {
  const [row] = await run(url, 'select sum(delivered) as sum from hooks.destinations')
  return Number(row?.['sum'])
}

const SIGNED = {
  'content-type': 'application/json',
  'content-length': BODY.length,
  'x-github-event': 'push',
  'x-hub-signature-256': `sha256=${createHmac('sha256', SECRET).update(BODY).digest('hex')}`,
}

/** Delivers a signed event to the server, with an id of its own. */
function post(base: string, agent: Agent): Promise<void> {
  return new Promise((resolve, reject) => {
    const headers = { ...SIGNED, 'x-github-delivery': crypto.randomUUID() }
    const outgoing = request(`${base}/webhooks/code_host`, { method: 'POST', agent, headers })
    outgoing.on('response', (response) => {
      if (response.statusCode !== 202) reject(new Error(`status ${response.statusCode}`))
      response.resume().on('end', resolve)
    })
    outgoing.on('error', reject).end(BODY)
  })
}
