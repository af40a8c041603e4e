import { systemClock } from '../kernel/time.ts'
import { Unavailable } from '../kernel/fault.ts'
import { repeat, reportsTo, type Repeat, type Reports } from '../kernel/repeat.ts'
import { messageOf, type Log } from '../kernel/log.ts'
import { createMetrics, type Metrics } from '../kernel/metrics.ts'
import { openClient, type Database } from './client.ts'
import { freeBytes, RESERVE_BYTES } from './disk.ts'
import { clusterFolder } from './embedded/cluster.ts'
import type { Space } from './embedded/engine.ts'
import { openEmbedded } from './embedded/open.ts'
import { analyzeTables, createVacuum, type Upkeep } from './embedded/upkeep.ts'
import { wasCanceled, type Backend } from './errors.ts'
import { createEngineMetrics } from './metrics.ts'

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
  /** Longest run of its upkeep's statements; by default a minute. */
  upkeepDeadlineMs?: number
  /** Without it, nothing is measured. */
  metrics?: Metrics
}

/** A database that is open; its end closes the client and, behind it, the embedded engine. */
export interface OpenedDatabase extends AsyncDisposable {
  db: Database
  backend: Backend
  /** Settles when the embedded engine dies; never with a server. */
  failed: Promise<Error>
}

/** One statement's deadline: providers give up after 10 s, so Gatehouse must answer sooner. */
const DEADLINE_MS = 5_000
const CONNECTIONS = 8
const UPKEEP_MS = 10_000

/** Opens the database of this process. Throws when another process holds the data directory. */
export async function openDatabase(options: DatabaseOptions, log: Log): Promise<OpenedDatabase> {
  const { url, deadlineMs = DEADLINE_MS, metrics = createMetrics() } = options
  const counts = createEngineMetrics(metrics)
  const { upkeepDeadlineMs } = options
  const common = { deadlineMs, upkeepDeadlineMs, metrics, connections: CONNECTIONS }
  if (url !== undefined) {
    const db = openClient({
      ...common,
      target: url,
      onNotEnded(error) {
        log.warn('lost connections not ended', { error: messageOf(error) })
      },
    })
    const failed = new Promise<never>(() => undefined)
    return { db, backend: 'postgresql', failed, [Symbol.asyncDispose]: () => db.close() }
  }
  const engine = await openEmbedded(options.dataDirectory, {
    onSpace: (space) => reportSpace(log, space),
    onCheckpoint: counts.checkpoint,
  })
  const client = openClient({
    ...common,
    target: engine,
    onLate: (query) => log.warn('statement not ended in time', { query }),
    onLateEnd: (query, ms) => log.info('late statement ended', { query, ms: Math.round(ms) }),
  })
  const upkeep = startUpkeep(options, client, counts.vacuum, log)
  return {
    db: { ...client, renewStatistics: upkeep.renewStatistics },
    backend: 'embedded',
    failed: engine.failed,
    async [Symbol.asyncDispose]() {
      const stopped = upkeep.stop()
      // Nothing else runs by now, and a vacuum may take a minute.
      engine.cancel()
      await stopped
      try {
        await client.close()
      } catch (error) {
        log.warn('client not closed', { error: messageOf(error) })
      }
      await engine.close()
    },
  }
}

function reportSpace(log: Log, { low, free }: Space) {
  const free_mib = Math.floor(free / 2 ** 20)
  if (low) log.warn('disk nearly full: the embedded database takes no changes', { free_mib })
  else log.info('the embedded database takes changes again', { free_mib })
}

/** Analyzes and vacuums the embedded database's tables now and then. */
function startUpkeep(options: DatabaseOptions, db: Database, onVacuum: () => void, log: Log) {
  const { dataDirectory, upkeepMs = UPKEEP_MS } = options
  const cluster = clusterFolder(dataDirectory)
  function repeatUpkeep(work: Upkeep, reports: Reports): Repeat {
    async function run(isStopped: () => boolean) {
      // These commands write even while PostgreSQL takes no changes: the last of the disk is not
      // for them.
      const mustEnd = () => isStopped() || freeBytes(cluster) < RESERVE_BYTES
      try {
        await work(db.at('upkeep'), mustEnd)
      } catch (error) {
        // The stop ends what runs. If somebody holds the engine for long, the next run does it.
        const isBusy = error instanceof Unavailable && !wasCanceled(error)
        if (!isBusy && !isStopped()) throw error
      }
    }
    return repeat(systemClock, upkeepMs, 'upkeep of the database', run, reports)
  }
  const vacuumTables = createVacuum(() => systemClock.elapsed(), onVacuum)
  const renewed = reportsTo(log, 'statistics not renewed', 'statistics are renewed again')
  const vacuumed = reportsTo(log, 'tables not vacuumed', 'tables are vacuumed again')
  const statistics = repeatUpkeep(analyzeTables, renewed)
  const vacuums = repeatUpkeep(vacuumTables, vacuumed)
  return {
    renewStatistics: () => statistics.now(),
    stop: () => Promise.all([statistics.stop(), vacuums.stop()]),
  }
}
