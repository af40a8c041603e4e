import { systemClock } from '../kernel/time.ts'
import { Unavailable } from '../kernel/fault.ts'
import { repeat, type Repeat, type Reports } from '../kernel/repeat.ts'
import { messageOf, type Log } from '../kernel/log.ts'
import { openClient, type Database } from './client.ts'
import { openEmbedded } from './embedded/open.ts'
import { freeBytes, RESERVE_BYTES } from './disk.ts'
import { clusterFolder } from './embedded/cluster.ts'
import { analyzeTables, vacuumTables, type Upkeep } from './embedded/upkeep.ts'

/** Where the database is: a server by URL, or the embedded engine in the data directory. */
export interface DatabaseOptions {
  readonly url: string | undefined
  readonly dataDirectory: string
  /** Longest wait for one statement; by default what a request can wait. */
  readonly deadlineMs?: number
  /**
   * How often the embedded engine's tables are analyzed and vacuumed; by default every ten seconds.
   */
  readonly upkeepMs?: number
}

export interface OpenedDatabase {
  readonly db: Database
  readonly backend: 'embedded' | 'postgresql'
  /** Closes the client and, behind it, the embedded engine. */
  close(): Promise<void>
  /** Settles when the embedded engine dies; never with a server. */
  readonly failed: Promise<Error>
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
      onNotEnded: (error) => log.warn('lost connections not ended', { error: messageOf(error) }),
    })
    return {
      db,
      backend: 'postgresql',
      close: () => db.close(),
      failed: new Promise(() => undefined),
    }
  }
  const engine = await openEmbedded(dataDirectory, ({ low, free }) => {
    const free_mib = Math.floor(free / 2 ** 20)
    if (low) log.warn('disk nearly full: the embedded database takes no changes', { free_mib })
    else log.info('the embedded database takes changes again', { free_mib })
  })
  const client = openClient({ target: engine.socket, deadlineMs, connections: CONNECTIONS })
  let closing = false
  const cluster = clusterFolder(dataDirectory)
  // These commands write even while PostgreSQL takes no changes: the last of the disk is not for
  // them.
  const stopped = (): boolean => closing || freeBytes(cluster) < RESERVE_BYTES
  function repeatUpkeep(work: Upkeep, reports: Reports): Repeat {
    // If somebody holds the engine for long, the next run does it.
    const ignoreUnavailable = (error: unknown): void => {
      if (!(error instanceof Unavailable)) throw error
    }
    const run = () => work(client, stopped).catch(ignoreUnavailable)
    return repeat(systemClock, upkeepMs, run, reports)
  }
  const statistics = repeatUpkeep(analyzeTables, {
    fails: (error) => log.warn('statistics not renewed', { error: messageOf(error) }),
    works: () => log.info('statistics are renewed again'),
  })
  const vacuums = repeatUpkeep(vacuumTables, {
    fails: (error) => log.warn('tables not vacuumed', { error: messageOf(error) }),
    works: () => log.info('tables are vacuumed again'),
  })
  return {
    db: { ...client, renewStatistics: () => statistics.now() },
    backend: 'embedded',
    failed: engine.failed,
    async close() {
      closing = true
      await Promise.all([statistics.stop(), vacuums.stop()])
      await client
        .close()
        .catch((error: unknown) => log.warn('client not closed', { error: messageOf(error) }))
      await engine.close()
    },
  }
}
