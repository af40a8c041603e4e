import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { Server } from 'node:http'
import { createGate } from '../../db/gate.ts'
import { migrate } from '../../db/migrate.ts'
import { openDatabase, type OpenedDatabase } from '../../db/open.ts'
import { refuseUnfitServer } from '../../db/server.ts'
import { Unavailable } from '../../kernel/fault.ts'
import { createBodyBudget } from '../../kernel/http/body.ts'
import { createHttpMetrics } from '../../kernel/http/request-log.ts'
import { createWaitingRequests } from '../../kernel/http/waiting.ts'
import { messageOf, type Log } from '../../kernel/log.ts'
import type { Outbound } from '../../kernel/net/outbound.ts'
import { createMetrics, type Metrics } from '../../kernel/metrics.ts'
import { retryWhileUnavailable } from '../../kernel/repeat.ts'
import { systemClock, type Clock } from '../../kernel/time.ts'
import { measureProcess } from '../../kernel/processes/process-metrics.ts'
import { startAuditRetention } from '../../services/audit-retention.ts'
import { startNoticeRetention } from '../../services/notices/retention.ts'
import type { SigningSecrets } from '../../services/hooks/receive/schemes/signing-secrets.ts'
import { configuredSecrets } from '../../services/hooks/receive/schemes/configured-secrets.ts'
import { reportSecretKey } from '../../services/secret-key.ts'
import type { Addresses, ServiceName, ConfigSource } from '../frame/configuration.ts'
import type { CommandTable } from '../frame/command.ts'
import { controlPath, openControl, runInServer, type RunCommand } from '../frame/control.ts'
import type { Instance } from './instance.ts'
import {
  refuseBeyondLoopback,
  startListener,
  type RunningListener,
  type Service,
  type ServiceContext,
} from './listeners.ts'
import { ensureKey } from './secret-key.ts'

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
  /** This process as one of several. */
  instance?: Pick<Instance, 'number' | 'shareMetrics'> | undefined
  /** Called when links are served while the database is out of reach. */
  onLinksAlone?: (addresses: ReadonlyMap<ServiceName, string>) => void
  /** How other programs are reached; `kernel/net/outbound.ts` when absent. */
  outbound?: Outbound
  /** `systemClock` when absent. */
  clock?: Clock
}

interface OpenOptions extends ProgramOptions {
  secrets: SigningSecrets
}

/** A running Gatehouse. */
export type Program = Awaited<ReturnType<typeof openProgram>>

/** How long requests may take when the program stops before it is open. */
const EARLY_STOP_MS = 2_000
const PREPARE_AGAIN_MS = 2_000

/**
 * Opens the database, migrates it, and starts the services on it. Nothing global is touched
 * (signals, umask, exit), so that one process may run several. Rejects with the reason of `stop`
 * when that is aborted before it is open.
 */
export async function openProgram(options: ProgramOptions, stop: AbortSignal) {
  const { config, log, instance } = options
  await refuseBeyondLoopback(config, options.services)
  const { DATABASE_URL: url, GATEHOUSE_DATA_DIR: dataDirectory } = config.current
  await using opened = new AsyncDisposableStack()
  const metrics = createMetrics(instance && { instance_number: instance.number })
  const database = opened.use(await openDatabase({ url, dataDirectory, metrics }, log))
  stop.throwIfAborted()
  const secrets = configuredSecrets(config, randomBytes)
  const running = createServices({ ...options, metrics, secrets }, database)
  let newKey: string | undefined
  try {
    newKey = await openServices(running, database, { ...options, secrets }, stop)
  } catch (error) {
    // Running services would keep the process alive.
    await running.close(EARLY_STOP_MS)
    throw error
  }
  // From here on they stay open.
  opened.move()
  return {
    /** Where each service listens. */
    addresses: running.addresses(),
    backend: database.backend,
    /** The file of the key that encrypts secrets, if this start has made it. */
    newKey,
    /** Settles when the embedded database dies; never with a server. */
    failed: database.failed,
    /**
     * Lets running requests finish for `graceMs`, then closes listeners, services and database,
     * even if closing one of them fails. Returns the errors.
     */
    async close(graceMs: number) {
      const errors = await running.close(graceMs)
      return [...errors, ...(await errorsOf([() => database[Symbol.asyncDispose]()]))]
    },
  }
}

/**
 * Prepares the database and opens all services. Gives the file of a new key. While the database is
 * out of reach, links are served from their snapshot if there is one.
 */
async function openServices(
  running: Services,
  database: OpenedDatabase,
  options: OpenOptions,
  stop: AbortSignal,
): Promise<string | undefined> {
  const { services, log, onLinksAlone } = options
  let waiting = services
  let newKey: string | undefined
  try {
    newKey = await orStopped(prepare(database, options), stop)
  } catch (error) {
    const isAway = error instanceof Unavailable && services.includes('links')
    const alone = isAway ? await running.openAlone('links') : undefined
    if (alone === undefined) throw error
    log.warn('database out of reach: links are served from their snapshot', {
      links: alone.links,
      written: alone.written,
      error: messageOf(error),
    })
    onLinksAlone?.(running.addresses())
    const tries = { tries: Infinity, pauseMs: PREPARE_AGAIN_MS, signal: stop }
    const again = retryWhileUnavailable(tries)(async () => {
      await prepare(database, options)
      await alone.useDatabase()
    })
    await orStopped(again, stop)
    log.info('database in reach: all services start')
    waiting = services.filter((name) => name !== 'links')
  }
  await running.open(waiting)
  await running.begin()
  return newKey
}

/** A migration may wait for another instance's, for as long as that takes. */
async function orStopped<T>(work: Promise<T>, stop: AbortSignal): Promise<T> {
  stop.throwIfAborted()
  await Promise.race([work, once(stop, 'abort')])
  stop.throwIfAborted()
  return await work
}

/** Does all of it at once, and gives what it threw. */
async function errorsOf(works: readonly (() => unknown)[]): Promise<readonly unknown[]> {
  const ends = await Promise.allSettled(works.map(async (work) => work()))
  return ends.flatMap((end) => (end.status === 'rejected' ? [end.reason as unknown] : []))
}

/** Migrates the database, and gives the file of the key of its secrets if that is new. */
async function prepare({ db, backend }: OpenedDatabase, { config, secrets, log }: OpenOptions) {
  if (backend === 'postgresql') await refuseUnfitServer(db)
  const applied = await migrate(db)
  if (applied.length > 0) log.info('migrated', { migrations: applied.join(' ') })
  const file = ensureKey(config, randomBytes)
  if (file !== undefined) log.info('secret key made', { file })
  await reportSecretKey(db, secrets.box(), log)
  return file
}

/** The services of a program, with their listeners. */
type Services = ReturnType<typeof createServices>

function createServices(
  options: OpenOptions & { metrics: Metrics },
  { db, backend }: OpenedDatabase,
) {
  const { config, log, metrics, instance, clock = systemClock } = options
  const listeners: RunningListener[] = []
  const services: Service[] = []
  const addresses: Addresses = () => {
    return new Map(listeners.map(({ service, address }) => [service, address]))
  }
  const context = { ...options, clock, db, addresses }
  const shared = {
    config,
    bodyBudget: createBodyBudget(256 * 1024 * 1024),
    log,
    renderMetrics: instance?.shareMetrics(metrics.render) ?? metrics.render,
    httpMetrics: createHttpMetrics(metrics),
    waiting: createWaitingRequests(metrics, log),
    clock,
  }
  const endMeasuring = measureProcess(metrics, clock)
  const keptDays = () => config.current.GATEHOUSE_AUDIT_DAYS
  const audit = startAuditRetention({ db, clock, log, keptDays })
  const notices = startNoticeRetention({ db, clock, log })
  let control: Server | undefined

  return {
    addresses,

    /** Opens services, then their listeners. */
    async open(names: readonly ServiceName[]) {
      const opened: Service[] = []
      // One after the other: each connection that more at once would need costs more than it saves.
      for (const name of names) {
        const { openService } = await FILES[name]()
        const service = await openService(context)
        services.push(service)
        opened.push(service)
        await service.prepare?.()
      }
      for (const service of opened) listeners.push(await startListener(shared, service))
    },

    /**
     * Opens a service and its listener while the database is out of reach; undefined if it has
     * nothing to serve then.
     */
    async openAlone(name: ServiceName) {
      const gate = createGate(db)
      const { openService } = await FILES[name]()
      const service = await openService({ ...context, db: gate.db })
      services.push(service)
      const restored = await service.restore?.()
      if (restored === undefined) return undefined
      listeners.push(await startListener(shared, service))
      return {
        ...restored,
        /** The database is prepared. */
        async useDatabase() {
          await gate.open()
          await service.prepare?.()
        },
      }
    },

    /** Starts background work: all services are open. */
    async begin() {
      if (backend === 'embedded') control = await startControl(context, options.table, services)
      for (const service of services) service.begin?.()
      audit.prune()
      notices.prune()
    },

    async close(graceMs: number) {
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
    },
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
