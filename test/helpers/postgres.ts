import type { ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import postgres from 'postgres'
import { clusterLogTail, initializeCluster, startClusterProcess } from './postgres-process.ts'
import { freePort } from './free-port.ts'
import { migrate } from './migrate.ts'
import { recordFolder } from './orphans.ts'
import type { Owner } from './owner.ts'
import { runFolder } from './run-folder.ts'
import { secret } from './secrets.ts'
import type { SmallDisk } from './small-disk.ts'
import { until } from './until.ts'

/** Environment variable by which test/run.ts hands its cluster to every test file. */
export const SHARED_POSTGRES = 'GATEHOUSE_TEST_POSTGRES_URL'

/** The database of a shared cluster from which migrated ones are copied: a migration costs twice a start. */
export const MIGRATED = 'template_migrated'

/** Databases of a running PostgreSQL. */
export type Databases = {
  /** Address of a database, with user and password. */
  url(database?: string): string
  /** A fresh database with a random name, empty or a copy of `template`; gives its address. */
  createDatabase(template?: string): Promise<string>
  /** Removes a database by its address, also when somebody is connected. */
  dropDatabase(url: string): Promise<void>
}

/** A PostgreSQL cluster of our own, which a test may stop and start. */
export type Cluster = Databases & {
  readonly port: number
  /** `fast` ends connections and shuts down; `immediate` is a crash, recovered from at start. */
  stop(mode?: 'fast' | 'immediate'): Promise<void>
  /** Starts a stopped cluster on the same port and files. */
  start(): Promise<void>
  /** Stops it and removes its files. */
  destroy(): Promise<void>
}

/** A new cluster that ends with the test; `disk` has its files, when given. */
export async function ownPostgres(t: Owner, disk?: SmallDisk): Promise<Cluster> {
  const cluster = await startPostgres(disk)
  t.teardown(() => cluster.destroy())
  return cluster
}

/** A new cluster on a free port of 127.0.0.1, with fsync, ready for connections. About 2 s. */
export async function startPostgres(disk?: SmallDisk): Promise<Cluster> {
  const folder = disk?.folder ?? (await mkdtemp(join(tmpdir(), 'gatehouse-postgres-')))
  if (disk === undefined) recordFolder(runFolder(), folder)
  const password = secret('postgres-password')
  const port = await freePort()
  const databases = databasesAt(`postgres://gatehouse:${password}@127.0.0.1:${port}/postgres`)
  let child: ChildProcess | undefined

  const removeAtExit = (): void => {
    child?.kill('SIGQUIT')
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
  }
  async function start(): Promise<void> {
    const started = startClusterProcess(folder, port, disk?.on)
    child = started
    await until(
      async () => {
        if (hasEnded(started)) return 'ended'
        return (await run(databases.url(), 'select 1')).length === 1
      },
      'PostgreSQL to accept connections',
      60_000,
    )
    if (hasEnded(started)) throw new Error(`PostgreSQL did not start: ${clusterLogTail(folder)}`)
  }
  async function stop(mode: 'fast' | 'immediate' = 'fast'): Promise<void> {
    if (child === undefined || hasEnded(child)) return
    const ended = Promise.withResolvers<void>()
    child.once('exit', () => ended.resolve())
    child.kill(mode === 'fast' ? 'SIGINT' : 'SIGQUIT')
    await ended.promise
  }
  async function destroy(): Promise<void> {
    await stop('immediate')
    await rm(folder, { recursive: true, force: true, maxRetries: 3 })
    process.off('exit', removeAtExit)
  }

  process.on('exit', removeAtExit)
  try {
    initializeCluster(folder, password, disk)
    await start()
  } catch (error) {
    await destroy()
    throw error
  }
  return { ...databases, port, start, stop, destroy }
}

let shared: Promise<Databases> | undefined

/** The run's cluster, else, for a file that runs alone, one that ends with the file. */
export function sharedPostgres(): Promise<Databases> {
  shared ??= openShared()
  return shared
}

async function openShared(): Promise<Databases> {
  const given = process.env[SHARED_POSTGRES]
  if (given !== undefined && given !== '') return databasesAt(given)
  const cluster = await startPostgres()
  await makeServerTemplate(cluster)
  // Loaded here only: importing tap in the runner would print a TAP report of its own.
  const { t } = await import('tap')
  t.teardown(() => cluster.destroy())
  return cluster
}

/** Makes the template MIGRATED of a new cluster. */
export async function makeServerTemplate(cluster: Databases): Promise<void> {
  await run(cluster.url(), `create database ${MIGRATED}`)
  await migrate({ DATABASE_URL: cluster.url(MIGRATED), GATEHOUSE_DATA_DIR: runFolder() })
}

/** Runs one statement on a connection of its own; for set-up and for looking at what is stored. */
export async function run(
  url: string,
  text: string,
  params: readonly postgres.ParameterOrJSON<never>[] = [],
): Promise<readonly postgres.Row[]> {
  // Its own limit of a connection's life is a timer of half an hour, for which a process would wait.
  const settings = { onnotice: () => undefined, connect_timeout: 5, max_lifetime: null }
  const sql = postgres(url, { max: 1, ...settings })
  try {
    return await sql.unsafe(text, [...params])
  } finally {
    await sql.end({ timeout: 5 })
  }
}

function databasesAt(admin: string): Databases {
  const url = (database = 'postgres'): string => {
    const address = new URL(admin)
    address.pathname = `/${database}`
    return address.href
  }
  return {
    url,
    async createDatabase(template = 'template1') {
      const name = `test_${randomBytes(8).toString('hex')}`
      await run(admin, `create database ${name} template ${template}`)
      return url(name)
    },
    async dropDatabase(address) {
      await run(admin, `drop database if exists ${new URL(address).pathname.slice(1)} with (force)`)
    },
  }
}

function hasEnded(child: ChildProcess): boolean {
  return child.pid === undefined || child.exitCode !== null || child.signalCode !== null
}
