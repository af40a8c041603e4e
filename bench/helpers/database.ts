import { MIGRATED, run, sharedPostgres, type Databases } from '../../test/helpers/postgres.ts'
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

/**
 * Gives a new cluster the files of its log that one has after its first minutes of work, to be used again. For
 * as long as they are missing, each 16 MiB of the log stop all commits until a file is made and on the disk.
 */
export async function recycleLog(cluster: Databases): Promise<void> {
  await run(cluster.url(), SWITCH_LOG)
  await run(cluster.url(), 'checkpoint')
}

/** Through 1 GiB, PostgreSQL's own max_wal_size. */
const SWITCH_LOG = `
do $$ begin
  for file in 1..64 loop
    perform pg_logical_emit_message(false, 'bench', ''), pg_switch_wal();
  end loop;
end $$`
