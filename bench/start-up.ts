import { temporaryFolder } from '../test/helpers/owner.ts'
import { sharedPostgres } from '../test/helpers/postgres.ts'
import { median, type Figure, type Owner, type Part } from './helpers/measure.ts'
import { startBenchServer } from './helpers/server.ts'

const ROUNDS = 5

/** Time from start to the ready line: embedded first and second, and on a server. */
export const startUp: Part = {
  name: 'start-up',
  async run(owner: Owner): Promise<readonly Figure[]> {
    const [first, second, server]: [number[], number[], number[]] = [[], [], []]
    for (let round = 0; round < ROUNDS; round++) {
      const data = await temporaryFolder(owner)
      for (const times of [first, second])
        times.push(await startOnce(owner, { GATEHOUSE_DATA_DIR: data }))
      const databases = await sharedPostgres()
      const url = await databases.createDatabase()
      await startOnce(owner, { DATABASE_URL: url })
      server.push(await startOnce(owner, { DATABASE_URL: url }))
      await databases.dropDatabase(url)
    }
    return [
      figure('embedded, first start', first, 5_000),
      figure('embedded, later start', second, 2_000),
      figure('PostgreSQL server, migrated', server, 2_000),
    ]
  },
}

async function startOnce(owner: Owner, env: Readonly<Record<string, string>>): Promise<number> {
  const server = await startBenchServer(owner, env)
  await server.stop()
  return server.readyMs
}

function figure(name: string, times: readonly number[], bound: number): Figure {
  const value = median(times)
  return { name, value, unit: 'ms', bound: `≤ ${bound}`, kept: value <= bound }
}
