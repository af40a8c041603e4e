import { run } from '../test/helpers/postgres.ts'
import { freshDatabase } from './helpers/database.ts'
import { deliveryLoad, makeBodies, SECRET } from './ingest.ts'
import { median, type Figure, type Owner, type Part } from './helpers/measure.ts'
import { portOf, startBenchServer, type BenchServer } from './helpers/server.ts'
import { linksSeed, visitLinks } from './helpers/visits.ts'

const COUNTS = [1, 2] as const
const LINKS = 1_000
const ROUNDS = 5
const SECONDS = 4

/** Redirects and deliveries with one and with two instances, each on a database of its own, in alternating rounds. */
export const instances: Part = {
  name: 'instances',
  async run(owner: Owner): Promise<readonly Figure[]> {
    const deliver = deliveryLoad(makeBodies())
    const visit = (port: number) => visitLinks({ port, seconds: SECONDS, links: LINKS })
    const servers = await Promise.all(COUNTS.map((count) => start(owner, count)))
    const loads = [
      { name: 'redirects', load: ({ links }: BenchServer) => visit(portOf(links)) },
      { name: 'deliveries', load: ({ hooks }: BenchServer) => deliver(portOf(hooks)) },
    ]
    const figures: Figure[] = []
    for (const { name, load } of loads) {
      const rates = servers.map((): number[] => [])
      for (let round = -1; round < ROUNDS; round++) {
        for (const [at, server] of servers.entries()) {
          const { perSecond } = await load(server)
          // The first round lets the code become fast: it is made, not measured.
          if (round >= 0) rates[at]?.push(perSecond)
        }
      }
      const medians = rates.map(median)
      for (const [at, value] of medians.entries()) {
        figures.push({ name: `${name}, instances: ${COUNTS[at]} (median)`, value, unit: '/s' })
      }
      const [one = Number.NaN, two = Number.NaN] = medians
      figures.push({ name: `${name}, 2 / 1`, value: two / one, unit: '' })
    }
    return figures
  },
}

async function start(owner: Owner, count: number): Promise<BenchServer> {
  const url = await freshDatabase(owner)
  const server = await startBenchServer(owner, {
    DATABASE_URL: url,
    HOOKS_CODE_HOST_SECRET: SECRET,
    GATEHOUSE_INSTANCES: String(count),
  })
  await run(url, linksSeed(LINKS))
  return server
}
