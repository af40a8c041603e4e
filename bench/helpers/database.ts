import { sharedPostgres } from '../../test/helpers/postgres.ts'
import type { Owner } from './measure.ts'
import { startBenchServer } from './server.ts'

/** The address of a new database of the run's cluster; it is removed when the part ends. */
export async function freshDatabase(owner: Owner): Promise<string> {
  const databases = await sharedPostgres()
  const url = await databases.createDatabase()
  owner.teardown(() => databases.dropDatabase(url))
  return url
}

/** The same with the product's tables, made by a server that has stopped again. */
export async function migratedDatabase(owner: Owner): Promise<string> {
  const url = await freshDatabase(owner)
  const server = await startBenchServer(owner, { DATABASE_URL: url })
  await server.stop()
  return url
}
