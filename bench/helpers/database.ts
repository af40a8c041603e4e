import { tmpdir } from 'node:os'
import { freeBytes } from '../../db/disk.ts'
import {
  makeServerTemplate,
  MIGRATED,
  run,
  sharedPostgres,
  startPostgres,
  type Cluster,
  type Databases,
} from '../../test/helpers/postgres.ts'
import { timed, type Owner } from './measure.ts'

/** Throws where fewer bytes are free for a cluster. */
export function expectFree(needed: number): void {
  const free = freeBytes(tmpdir())
  const gigabytes = (bytes: number) => Math.floor(bytes / 1e9)
  if (free < needed)
    throw new Error(`${gigabytes(free)} GB are free, expected at least ${gigabytes(needed)}`)
}

/** A new cluster on the disk, as an installation has it: those of tests are in memory. */
export function startBenchCluster(): Promise<Cluster> {
  return startPostgres(undefined, tmpdir())
}

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
 * The addresses of `count` databases with the product's tables, which `fill` has filled, in a cluster of their own. What
 * can be filled without the write-ahead log is.
 */
export async function filledDatabases(
  owner: Owner,
  count: number,
  fill: (urls: readonly string[]) => Promise<void>,
): Promise<readonly string[]> {
  const cluster = await startBenchCluster()
  owner.teardown(() => cluster.destroy())
  await run(cluster.url(), 'alter system set wal_level = minimal')
  await run(cluster.url(), 'alter system set max_wal_senders = 0')
  await cluster.stop()
  await cluster.start()
  await makeServerTemplate(cluster)
  const urls: string[] = []
  while (urls.length < count) urls.push(await cluster.createDatabase(MIGRATED))
  const ms = await timed(() => fill(urls))
  console.log(`  (seeded in ${Math.round(ms / 1000)} s)`)
  await run(cluster.url(), 'alter system reset all')
  await cluster.stop()
  await cluster.start()
  await recycleLog(cluster)
  return urls
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
