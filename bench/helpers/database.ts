import { MIGRATED, sharedPostgres } from '../../test/helpers/postgres.ts'
import type { Owner } from './measure.ts'

/** The address of a new database of the run's cluster; it is removed when the part ends. */
export function freshDatabase(owner: Owner): Promise<string> {
  return database(owner)
}

/** The same with the product's tables. */
export function migratedDatabase(owner: Owner): Promise<string> {
  return database(owner, MIGRATED)
}

async function database(owner: Owner, template?: string): Promise<string> {
  const databases = await sharedPostgres()
  const url = await databases.createDatabase(template)
  owner.teardown(() => databases.dropDatabase(url))
  return url
}
