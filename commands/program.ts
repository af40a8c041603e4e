import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { Server } from 'node:http'
import { migrate } from '../db/migrate.ts'
import { openDatabase, type OpenedDatabase } from '../db/open.ts'
import { refuseUnfitServer } from '../db/server.ts'
import { createBodyBudget } from '../kernel/http/body.ts'
import { createHttpMetrics } from '../kernel/http/request-log.ts'
import { createWaitingRequests } from '../kernel/http/waiting.ts'
import { messageOf, type Log } from '../kernel/log.ts'
import { createMetrics, type Metrics } from '../kernel/metrics.ts'
import { systemClock } from '../kernel/time.ts'
import { measureProcess } from '../kernel/processes/process-metrics.ts'
import { startAuditRetention } from '../services/audit-retention.ts'
import { startNoticeRetention } from '../services/notices/retention.ts'
import { configuredSecrets } from '../services/hooks/schemes/secrets.ts'
import type { Addresses, ServiceName, ConfigSource } from './configuration.ts'
import type { CommandTable } from './command.ts'
import { controlPath, openControl, runInServer, type RunCommand } from './control.ts'
import {
  refuseBeyondLoopback,
  startListener,
  type RunningListener,
  type Service,
  type ServiceContext,
} from './listeners.ts'

/** The files of the services, loaded when they are asked for. */
const FILES = {
  hooks: async () => await import('./services/hooks.ts'),
  links: async () => await import('./services/links.ts'),
  ops: async () => await import('./services/ops.ts'),
}

export interface ProgramOptions {
  config: ConfigSource
  services: readonly ServiceName[]
  version: string
  log: Log
  /** What other processes may have it run. */
  table: CommandTable
}

/** A running Gatehouse. */
export type Program = Awaited<ReturnType<typeof openProgram>>

/**
 * Opens the database, migrates it, and starts the services on it. Nothing global is touched
 * (signals, umask, exit), so that one process may run several. Rejects with the reason of `stop`
 * when that is aborted before it is open.
 */
export async function openProgram(options: ProgramOptions, stop: AbortSignal) {
  const { config, log } = options
  await refuseBeyondLoopback(config, options.services)
  const { DATABASE_URL: url, GATEHOUSE_DATA_DIR: dataDirectory } = config.current
  await using opened = new AsyncDisposableStack()
  const metrics = createMetrics()
  const database = opened.use(await openDatabase({ url, dataDirectory, metrics }, log))
  // A migration may wait for another instance's, for as long as that takes.
  stop.throwIfAborted()
  await Promise.race([prepare(database, log), once(stop, 'abort')])
  stop.throwIfAborted()
  const started = await start({ ...options, metrics }, database)
  // From here on they stay open.
  opened.move()
  return {
    /** Where each service listens. */
    addresses: started.addresses,
    backend: database.backend,
    /** Settles when the embedded database dies; never with a server. */
    failed: database.failed,
    /**
     * Lets running requests finish for `graceMs`, then closes listeners, services and database,
     * even if closing one of them fails. Returns the errors.
     */
    async close(graceMs: number) {
      const errors = await started.close(graceMs)
      return [...errors, ...(await errorsOf([() => database[Symbol.asyncDispose]()]))]
    },
  }
}

/** Does all of it at once, and gives what it threw. */
async function errorsOf(works: readonly (() => unknown)[]): Promise<readonly unknown[]> {
  const ends = await Promise.allSettled(works.map(async (work) => work()))
  return ends.flatMap((end) => (end.status === 'rejected' ? [end.reason as unknown] : []))
}

async function prepare({ db, backend }: OpenedDatabase, log: Log) {
  if (backend === 'postgresql') await refuseUnfitServer(db)
  const applied = await migrate(db)
  if (applied.length > 0) log.info('migrated', { migrations: applied.join(' ') })
}

async function start(
  options: ProgramOptions & { metrics: Metrics },
  { db, backend }: OpenedDatabase,
) {
  const { config, log, metrics } = options
  const listeners: RunningListener[] = []
  const services: Service[] = []
  const addresses: Addresses = () => {
    return new Map(listeners.map(({ service, address }) => [service, address]))
  }
  const secrets = configuredSecrets(config, randomBytes)
  const context = { ...options, secrets, db, addresses }
  const endMeasuring = measureProcess(metrics, systemClock)
  const keptDays = () => config.current.GATEHOUSE_AUDIT_DAYS
  const audit = startAuditRetention({ db, clock: systemClock, log, keptDays })
  const notices = startNoticeRetention({ db, clock: systemClock, log })
  let control: Server | undefined

  async function close(graceMs: number) {
    endMeasuring()
    const ended = await errorsOf([
      ...services.map((service) => () => service.endStreams?.()),
      () => control?.close(),
      () => control?.closeAllConnections(),
    ])
    const silent = await errorsOf(
      listeners.map(
        ({ listener }) =>
          () =>
            listener.close(graceMs),
      ),
    )
    const parts = [...services, audit, notices]
    const closed = await errorsOf(parts.map((part) => () => part.close()))
    return [...ended, ...silent, ...closed]
  }

  try {
    // One after the other: each connection that more at once would need costs more than it saves.
    for (const name of options.services) {
      const { openService } = await FILES[name]()
      services.push(await openService(context))
    }
    const shared = {
      config,
      bodyBudget: createBodyBudget(256 * 1024 * 1024),
      log,
      metrics,
      httpMetrics: createHttpMetrics(metrics),
      waiting: createWaitingRequests(metrics, log),
      clock: systemClock,
    }
    for (const service of services) {
      listeners.push(await startListener(shared, service))
    }
    if (backend === 'embedded') control = await startControl(context, options.table, services)
    for (const service of services) service.begin?.()
    audit.prune()
    notices.prune()
    return { addresses: addresses(), close }
  } catch (error) {
    // Running services would keep the process alive.
    await close(0)
    throw error
  }
}

/** The services also run without the socket; then other commands find the database locked. */
async function startControl(
  context: ServiceContext,
  table: CommandTable,
  services: readonly Service[],
) {
  const { config, log } = context
  const path = controlPath(config.current.GATEHOUSE_DATA_DIR)
  const actor = { kind: 'command' } as const
  const here = { actor, random: randomBytes, now: () => new Date(), forget }
  function forget(slug: string) {
    for (const service of services) service.forgetLink?.(slug)
  }
  const runCommand: RunCommand = async (argv, output, input) => {
    const code = await runInServer(argv, table, { ...context, ...here, output, input })
    // The change must count when the command ends; the database's notice may come later.
    await Promise.all(services.map((service) => service.refresh?.()))
    return code
  }
  try {
    return await openControl(path, runCommand, log)
  } catch (error) {
    log.warn('control socket not opened', { path, error: messageOf(error) })
    return undefined
  }
}
