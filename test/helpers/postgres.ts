import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import {
  chownSync,
  closeSync,
  openSync,
  readFileSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { freemem, tmpdir } from 'node:os'
import { join } from 'node:path'
import { inspect } from 'node:util'
import postgres from 'postgres'
import type { SmallDisk } from '../long/small-disk.ts'
import { postgresPrograms } from '../runner/system-parts.ts'
import { migrate } from './cli.ts'
import { freePort, type Owner } from './owner.ts'
import { recordChild, recordFolder, runFolder } from './program.ts'
import { secret } from './secrets.ts'
import { sharedUrl, socketOf } from './shared-postgres.ts'
import { noteSeen, until } from './until.ts'

/** The database of a shared cluster from which migrated ones are copied: a migration costs twice a start. */
export const MIGRATED = 'template_migrated'

/** Databases of a running PostgreSQL. */
export type Databases = ReturnType<typeof databasesAt>

/** A PostgreSQL cluster of our own, which a test may stop and start. */
export type Cluster = Awaited<ReturnType<typeof startPostgres>>

/** A new cluster that ends with the test; `disk` has its files, when given. */
export async function ownPostgres(t: Owner, disk?: SmallDisk) {
  const cluster = await startPostgres(disk)
  t.teardown(() => cluster.destroy())
  return cluster
}

/** A whole run makes some hundred databases of 11 MB each. */
const ROOM_BYTES = 10 * 2 ** 30

/** Where clusters are made: in memory where there is room, because a new database costs a quarter there. */
function clusterParent() {
  const memory = '/dev/shm'
  try {
    const { bavail, bsize } = statfsSync(memory)
    return Math.min(bavail * bsize, freemem()) > ROOM_BYTES ? memory : tmpdir()
  } catch {
    return tmpdir()
  }
}

/**
 * A new cluster on a free port of 127.0.0.1, with fsync, ready for connections. About 2 s. Its files are in a new folder
 * in `parent`, or on `disk`.
 */
export async function startPostgres(disk?: SmallDisk, parent = clusterParent()) {
  const folder = disk?.folder ?? (await mkdtemp(join(parent, 'gatehouse-postgres-')))
  if (disk === undefined) recordFolder(runFolder(), folder)
  const password = secret('postgres-password')
  const port = await freePort()
  const databases = databasesAt(`postgres://gatehouse:${password}@127.0.0.1:${port}/postgres`)
  let child: ChildProcess | undefined

  const removeAtExit = () => {
    child?.kill('SIGQUIT')
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
  }
  /** Starts a stopped cluster on the same port and files. */
  async function start() {
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
    if (!hasEnded(started)) return
    const lines = readFileSync(clusterLog(folder), 'utf8').trim().split('\n')
    throw new Error(`PostgreSQL did not start: ${lines.slice(-5).join(' | ')}`)
  }
  /** `fast` ends connections and shuts down; `immediate` is a crash, recovered from at start. */
  async function stop(mode: 'fast' | 'immediate' = 'fast') {
    if (child === undefined || hasEnded(child)) return
    const ended = once(child, 'exit')
    child.kill(mode === 'fast' ? 'SIGINT' : 'SIGQUIT')
    await ended
  }
  /** Stops it and removes its files. */
  async function destroy() {
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
  return {
    ...databases,
    port,
    /** Its files, and its socket. */
    folder,
    start,
    stop,
    destroy,
  }
}

let shared: Promise<Databases> | undefined

/** The run's cluster, else, for a file that runs alone, one that ends with the file. */
export function sharedPostgres() {
  shared ??= openShared()
  return shared
}

async function openShared() {
  const given = sharedUrl()
  if (given !== undefined) return databasesAt(given)
  const cluster = await startPostgres()
  await makeServerTemplate(cluster)
  // Loaded here only: importing tap in the runner would print a TAP report of its own.
  const { t } = await import('tap')
  t.teardown(() => cluster.destroy())
  return cluster
}

/** Makes the template MIGRATED of a new cluster. */
export async function makeServerTemplate(cluster: Databases) {
  await run(cluster.url(), `create database ${MIGRATED}`)
  await migrate({ DATABASE_URL: cluster.url(MIGRATED), GATEHOUSE_DATA_DIR: runFolder() })
}

/** Runs one statement; for set-up and for looking at what is stored. */
export async function run(
  url: string,
  text: string,
  params: readonly postgres.ParameterOrJSON<never>[] = [],
): Promise<readonly postgres.Row[]> {
  const isShared = socketOf(url) !== undefined
  const sql = isShared ? keptConnections(url) : postgres(url, { ...CONNECTION, max: 1 })
  try {
    const rows = await sql.unsafe(text, [...params])
    noteSeen(`${text} → ${inspect(rows.slice(0, 3), { maxStringLength: 100 })}`)
    return rows
  } finally {
    if (!isShared) await sql.end({ timeout: 5 })
  }
}

// Its own limit of a connection's life is a timer of half an hour, for which a process would wait.
const CONNECTION = { onnotice: () => undefined, connect_timeout: 30, max_lifetime: null }

const kept = new Map<string, postgres.Sql>()

/**
 * Connections to a database of the run's cluster, which end when nobody has used them for a moment: opening one takes ten
 * times as long as most statements. A cluster that a test stops gets new ones each time.
 */
function keptConnections(url: string) {
  return kept.getOrInsertComputed(url, () =>
    postgres(url, { ...CONNECTION, path: socketOf(url), max: 5, idle_timeout: 0.2 }),
  )
}

function databasesAt(admin: string) {
  /** Address of a database, with user and password. */
  const url = (database = 'postgres') => {
    const address = new URL(admin)
    address.pathname = `/${database}`
    return address.href
  }
  return {
    url,
    /** A fresh database with a random name, empty or a copy of `template`; gives its address. */
    async createDatabase(template = 'template1') {
      const name = `test_${randomBytes(8).toString('hex')}`
      await run(admin, `create database ${name} template ${template} strategy file_copy`)
      return url(name)
    },
    /** Removes a database by its address, also when somebody is connected. */
    async dropDatabase(address: string) {
      const name = new URL(address).pathname.slice(1)
      await run(admin, `drop database if exists ${name} with (force)`)
    },
  }
}

function hasEnded(child: ChildProcess) {
  return child.pid === undefined || child.exitCode !== null || child.signalCode !== null
}

/** Who runs PostgreSQL, which refuses root. */
type Account = { uid?: number; gid?: number }

/** Creates the files of a cluster; its superuser is `gatehouse`, who signs in by password. */
function initializeCluster(folder: string, password: string, disk?: SmallDisk) {
  const seen = disk?.seen ?? folder
  giveToAccount(seen)
  writeFileSync(join(seen, 'password'), password, { mode: 0o644 })
  const options = ['--pgdata', join(folder, 'cluster'), '--username=gatehouse', '--encoding=UTF8']
  // scram, in the exchange or as it is stored, would be a third of what a connection costs.
  const access = ['--auth=md5', `--pwfile=${join(folder, 'password')}`]
  // Only the set-up skips fsync: the server that the tests use runs with it.
  const locale = ['--locale=C.UTF-8', '--no-sync', '--no-instructions']
  runProgram('initdb', [...options, ...access, ...locale], folder, disk?.on)
}

/** Makes a folder that of the account. */
export function giveToAccount(folder: string) {
  const { uid, gid = uid } = clusterAccount()
  if (uid !== undefined && gid !== undefined) chownSync(folder, uid, gid)
}

/** Runs a program of PostgreSQL to its end, as the account. */
export function runProgram(
  name: string,
  options: readonly string[],
  cwd: string,
  on?: readonly string[],
) {
  const { file, args, as } = command(name, options, on)
  const { status, stderr } = spawnSync(file, args, { ...as, cwd, encoding: 'utf8' })
  if (status !== 0) throw new Error(`${name} failed, expected status 0: ${stderr}`)
}

/** Starts the server in the foreground, so that it is our child. Its log goes to the transcripts. */
export function startClusterProcess(
  folder: string,
  port: number,
  on?: readonly string[],
): ChildProcess {
  const settings = [
    `port=${port}`,
    'listen_addresses=127.0.0.1',
    // A small disk that is full has no room for a socket.
    `unix_socket_directories=${on === undefined ? folder : ''}`,
    'max_connections=300',
    'fsync=on',
    // Shared memory in the folder of the cluster: what a crash leaves goes with it.
    'dynamic_shared_memory_type=mmap',
    // Hundreds of databases that live for seconds: each would have a worker look at it.
    'autovacuum_naptime=1d',
    'log_line_prefix=%m [%p] ',
  ]
  const options = settings.flatMap((setting) => ['-c', setting])
  const { file, args, as } = command('postgres', ['-D', join(folder, 'cluster'), ...options], on)
  const log = openSync(clusterLog(folder), 'a')
  const stdio: ['ignore', number, number] = ['ignore', log, log]
  // Detached: Ctrl-C in the terminal reaches the runner, which ends its cluster in order.
  const child = spawn(file, args, { ...as, cwd: folder, stdio, detached: true })
  closeSync(log)
  recordChild(child)
  return child
}

function clusterLog(folder: string) {
  return join(runFolder(), `${folder.split('/').at(-1)}.log`)
}

/** How to start a program of PostgreSQL: on a disk of its own, `on` changes the account, which takes root. */
function command(
  name: string,
  options: readonly string[],
  [enter, ...inside]: readonly string[] = [],
) {
  const programs = postgresPrograms()
  if (programs === undefined) {
    throw new Error('PostgreSQL is missing: install it, on Debian apt-get install postgresql')
  }
  const [program, account] = [join(programs, name), clusterAccount()]
  if (enter === undefined) return { file: program, args: [...options], as: account }
  const { uid, gid } = account
  const user = uid === undefined ? [] : [`--setuid=${uid}`, `--setgid=${gid}`]
  return { file: enter, args: [...inside, '--wd=/', ...user, program, ...options], as: {} }
}

/** The account that runs PostgreSQL and what refuses root as it does. */
export function clusterAccount(): Account {
  if (process.getuid?.() !== 0) return {}
  const [, uid = 65534, gid = 65534] =
    /^postgres:[^:]*:(\d+):(\d+):/m.exec(readFileSync('/etc/passwd', 'utf8')) ?? []
  return { uid: Number(uid), gid: Number(gid) }
}
