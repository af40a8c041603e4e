import { systemClock } from '../kernel/time.ts'
import { Unavailable } from '../kernel/fault.ts'
import { repeat, type Repeat, type Reports } from '../kernel/repeat.ts'
import { messageOf, type Log } from '../kernel/log.ts'
import { openClient, type Database } from './client.ts'
import { openEmbedded } from './embedded/open.ts'
import { clusterFolder } from './embedded/places.ts'
import { freeBytes, RESERVE_BYTES } from './embedded/space.ts'
import { analyzeChanged } from './embedded/statistics.ts'
import { vacuumWorn } from './embedded/vacuum.ts'

/** Where the database is: a server by URL, or the embedded engine in the data directory. */
export interface DatabaseOptions {
  readonly url: string | undefined
  readonly dataDirectory: string
  /** Longest wait for one statement; by default what a request can wait. */
  readonly deadlineMs?: number
  /** How often the embedded engine's tables are looked after; by default each ten seconds. */
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

/** One statement's deadline; a sender gives up after 10 s, so a stalled database must answer sooner. */
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
  const engine = await openEmbedded({
    directory: dataDirectory,
    onSpace({ low, free }) {
      const free_mib = Math.floor(free / 2 ** 20)
      if (low) log.warn('disk nearly full: the embedded database takes no changes', { free_mib })
      else log.info('the embedded database takes changes again', { free_mib })
    },
  })
  // One session serves all, so more connections would only wait for each other.
  const client = openClient({ target: engine.socketAt, deadlineMs, connections: 4 })
  let closing = false
  const cluster = clusterFolder(dataDirectory)
  // PostgreSQL that takes no changes takes these, which write as well: the last of the disk is not for them.
  const stopped = (): boolean => closing || freeBytes(cluster) < RESERVE_BYTES
  /** What autovacuum does for a server; who holds the engine for long is let finish. */
  function upkeep(work: typeof vacuumWorn, reports: Reports): Repeat {
    const patient = (error: unknown): void => {
      if (!(error instanceof Unavailable)) throw error
    }
    return repeat(systemClock, upkeepMs, () => work(client, stopped).catch(patient), reports)
  }
  const statistics = upkeep(analyzeChanged, {
    fails: (error) => log.warn('statistics not renewed', { error: messageOf(error) }),
    works: () => log.info('statistics are renewed again'),
  })
  const vacuums = upkeep(vacuumWorn, {
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
