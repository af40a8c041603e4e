import { keepAlive } from '../test/helpers/deliveries.ts'
import { run } from '../test/helpers/postgres.ts'
import { seedStatements } from '../test/helpers/transfer.ts'
import { seedEvents } from './helpers/event-seed.ts'
import { migratedDatabase } from './helpers/database.ts'
import { fetchPage } from './helpers/fetch-page.ts'
import {
  atMost,
  median,
  quantile,
  timed,
  type Figure,
  type Owner,
  type Part,
} from './helpers/measure.ts'
import { startBenchServer } from './helpers/server.ts'

const EVENTS = 1_000_000
/** Ten days of sessions, one each half an hour, with 200 lines each. */
const SEED = { events: 1_000, links: 50_000, sessions: 480 }
const ROUNDS = 500
const WARM_UP = 50
const P99_MS = 20

/** The counters that dashboards read, as the ingestion of all these events would have left them. */
const ROLL_UP = `insert into hooks.activity (provider, minute, events)
  select provider, date_trunc('minute', received_at), count(*) from hooks.events group by 1, 2
  on conflict do nothing`

/** Where each service begins, one request at a time, with a million events in the log. */
export const dashboard: Part = {
  name: 'dashboard',
  async run(owner: Owner): Promise<readonly Figure[]> {
    const url = await migratedDatabase(owner)
    await run(url, seedStatements(SEED))
    await seedEvents(url, EVENTS)
    await run(url, ROLL_UP)
    await run(url, 'vacuum analyze')
    const services = ['hooks', 'links', 'ops'] as const
    const server = await startBenchServer(owner, { DATABASE_URL: url }, services)
    const pages = [
      { name: 'hooks, dashboard', address: `${server.hooks}/`, times: [] as number[] },
      { name: 'hooks, log', address: `${server.hooks}/log`, times: [] as number[] },
      { name: 'links, first page', address: `${server.links}/-/`, times: [] as number[] },
      { name: 'ops, dashboard', address: `${server.ops}/`, times: [] as number[] },
      { name: 'ops, sessions', address: `${server.ops}/sessions`, times: [] as number[] },
      { name: 'ops, events', address: `${server.ops}/events`, times: [] as number[] },
    ]
    const agent = keepAlive(owner, 1)
    for (let round = -WARM_UP; round < ROUNDS; round++) {
      for (const { address, times } of pages) {
        const ms = await timed(() => fetchPage(address, agent))
        if (round >= 0) times.push(ms)
      }
    }
    return pages.flatMap(({ name, times }) => [
      { name: `${name}: median`, value: median(times), unit: 'ms' },
      atMost(`${name}: p99`, quantile(times, 0.99), P99_MS, 'ms'),
    ])
  },
}
