import { systemClock } from '../kernel/time.ts'
import { Unavailable } from '../kernel/fault.ts'
import { repeat, reportsTo, type Repeat, type Reports } from '../kernel/repeat.ts'
import { messageOf, type Log } from '../kernel/log.ts'
import { openClient, type Database } from './client.ts'
import { openEmbedded } from './embedded/open.ts'
import { freeBytes, RESERVE_BYTES } from './disk.ts'
import { clusterFolder } from './embedded/cluster.ts'
import { analyzeTables, vacuumTables, type Upkeep } from './embedded/upkeep.ts'

/** Where the database is: a server by URL, or the embedded engine in the data directory. */
export interface DatabaseOptions {
  url: string | undefined
  dataDirectory: string
  /** Longest wait for one statement; by default what a request can wait. */
  deadlineMs?: number
  /**
   * How often the embedded engine's tables are analyzed and vacuumed; by default every ten
   * seconds.
   */
  upkeepMs?: number
}

/** A database that is open; its end closes the client and, behind it, the embedded engine. */
export interface OpenedDatabase extends AsyncDisposable {
  db: Database
  backend: 'embedded' | 'postgresql'
  /** Settles when the embedded engine dies; never with a server. */
  failed: Promise<Error>
}

/** One statement's deadline: providers give up after 10 s, so Gatehouse must answer sooner. */
const DEADLINE_MS = 5_000
const CONNECTIONS = 8
const UPKEEP_MS = 10_000

/** Opens the database of this process. Throws when another process holds the data directory. */
export async function openDatabase(options: DatabaseOptions, log: Log): Promise<OpenedDatabase> {
  const { url, dataDirectory, deadlineMs = DEADLINE_MS, upkeepMs = UPKEEP_MS } = options
  if (url !== undefined) {
    const db = openClient({
      target: url,
      deadlineMs,
      connections: CONNECTIONS,
      onNotEnded(error) {
        log.warn('lost connections not ended', { error: messageOf(error) })
      },
    })
    const failed = new Promise<never>(() => undefined)
    return { db, backend: 'postgresql', failed, [Symbol.asyncDispose]: () => db.close() }
  }
  const engine = await openEmbedded(dataDirectory, ({ low, free }) => {
    const free_mib = Math.floor(free / 2 ** 20)
    if (low) log.warn('disk nearly full: the embedded database takes no changes', { free_mib })
    else log.info('the embedded database takes changes again', { free_mib })
  })
  const client = openClient({ target: engine.socket, deadlineMs, connections: CONNECTIONS })
  const cluster = clusterFolder(dataDirectory)
  function repeatUpkeep(work: Upkeep, reports: Reports): Repeat {
    async function run(isStopped: () => boolean) {
      // These commands write even while PostgreSQL takes no changes: the last of the disk is not
      // for them.
      const mustEnd = () => isStopped() || freeBytes(cluster) < RESERVE_BYTES
      try {
        await work(client, mustEnd)
      } catch (error) {
        // If somebody holds the engine for long, the next run does it.
        if (!(error instanceof Unavailable)) throw error
      }
    }
    return repeat(systemClock, upkeepMs, 'upkeep of the database', run, reports)
  }
  const renewed = reportsTo(log, 'statistics not renewed', 'statistics are renewed again')
  const vacuumed = reportsTo(log, 'tables not vacuumed', 'tables are vacuumed again')
  const statistics = repeatUpkeep(analyzeTables, renewed)
  const vacuums = repeatUpkeep(vacuumTables, vacuumed)
  return {
    db: { ...client, renewStatistics: () => statistics.now() },
    backend: 'embedded',
    failed: engine.failed,
    async [Symbol.asyncDispose]() {
      await Promise.all([statistics.stop(), vacuums.stop()])
      try {
        await client.close()
      } catch (error) {
        log.warn('client not closed', { error: messageOf(error) })
      }
      await engine.close()
    },
  }
}
