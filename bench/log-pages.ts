import { Agent } from 'node:http'
import { cursorAt } from '../services/hooks/log/events/filter.ts'
import { run } from '../test/helpers/postgres.ts'
import { seedEvents } from './helpers/event-seed.ts'
import { migratedDatabase } from './helpers/database.ts'
import { fetchPage } from './helpers/fetch-page.ts'
import { atMost, median, timed, type Figure, type Owner, type Part } from './helpers/measure.ts'
import { startBenchServer } from './helpers/server.ts'

const EVENTS = 1_000_000
const DEPTH = 500_000
const ROUNDS = 200
const BOUND = 1.2

/** `/log` on a million events: a page half a million deep costs what the first one costs. */
export const logPages: Part = {
  name: 'log-pages',
  async run(owner: Owner): Promise<readonly Figure[]> {
    const url = await migratedDatabase(owner)
    await seedEvents(url, EVENTS)
    const server = await startBenchServer(owner, { DATABASE_URL: url })

    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    owner.teardown(() => agent.destroy())
    const paths: Record<string, string> = {}
    for (const [name, filter] of [
      ['all', ''],
      ['one provider', "where provider = 'code_host'"],
    ] as const) {
      const query = name === 'all' ? '' : 'provider=code_host&'
      paths[`first, ${name}`] = `/log?${query}limit=50`
      const [row] = await run(
        url,
        `select id::int from hooks.events ${filter} order by id desc offset ${DEPTH} limit 1`,
      )
      paths[`deep, ${name}`] = `/log?${query}limit=50&cursor=${cursorAt(Number(row?.['id']))}`
    }
    const times = new Map<string, number[]>(Object.keys(paths).map((name) => [name, []]))
    for (let round = -20; round < ROUNDS; round++) {
      for (const [name, path] of Object.entries(paths)) {
        const ms = await timed(() => fetchPage(`${server.hooks}${path}`, agent))
        if (round >= 0) times.get(name)?.push(ms)
      }
    }
    const medians = [...times].map(([name, values]) => ({
      name: `${name} (median)`,
      value: median(values),
      unit: 'ms',
    }))
    const values = medians.map(({ value }) => value)
    const ratio = Math.max(...values) / Math.min(...values)
    return [...medians, atMost('slowest / fastest', ratio, BOUND, '×')]
  },
}
