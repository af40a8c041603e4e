import { randomBytes } from 'node:crypto'
import type { Server } from 'node:http'
import { migrate } from '../db/migrate.ts'
import { openDatabase, type OpenedDatabase } from '../db/open.ts'
import { refuseUnfitServer } from '../db/server.ts'
import { createBodyBudget } from '../kernel/http/body.ts'
import { createHttpMetrics } from '../kernel/http/request-log.ts'
import { messageOf, type Log } from '../kernel/log.ts'
import { createMetrics } from '../kernel/metrics.ts'
import { systemClock } from '../kernel/time.ts'
import { configuredSecrets } from '../services/hooks/secrets.ts'
import type { Addresses, ServiceName, ConfigSource } from './configuration.ts'
import { runInServer } from './command-line.ts'
import { controlPath, openControl } from './control.ts'
import {
  refuseBeyondLoopback,
  startListener,
  type RunningListener,
  type OpenService,
  type Service,
  type ServiceContext,
} from './listeners.ts'

/** The services, loaded when they are asked for. */
const OPEN: Readonly<Record<ServiceName, OpenService>> = {
  hooks: async (context) => (await import('./services/hooks.ts')).openHooksService(context),
  links: async (context) => (await import('./services/links.ts')).openLinksService(context),
  ops: async (context) => (await import('./services/ops.ts')).openOpsService(context),
}

export interface ProgramOptions {
  readonly config: ConfigSource
  readonly services: readonly ServiceName[]
  readonly version: string
  readonly log: Log
}

/** A running Gatehouse. */
export interface Program {
  /** Where each service listens. */
  readonly addresses: ReadonlyMap<ServiceName, string>
  readonly backend: OpenedDatabase['backend']
  /** Settles when the embedded database dies; never with a server. */
  readonly failed: Promise<Error>
  /** Lets running requests finish for `graceMs`, then closes listeners, services and database. */
  close(graceMs: number): Promise<void>
}

/**
 * Opens the database, migrates it, and starts the services on it. Nothing global is touched
 * (signals, umask, exit), so that one process may run several. Rejects with the reason of `stop`
 * when that is aborted before it is open.
 */
export async function openProgram(options: ProgramOptions, stop: AbortSignal): Promise<Program> {
  const { config, log } = options
  await refuseBeyondLoopback(config, options.services)
  const { DATABASE_URL: url, GATEHOUSE_DATA_DIR: dataDirectory } = config.current
  const database = await openDatabase({ url, dataDirectory }, log)
  try {
    // A migration may wait for another instance's, for as long as that takes.
    await Promise.race([prepare(database, log), rejectionOf(stop)])
    const started = await start(options, database)
    return {
      ...started,
      backend: database.backend,
      failed: database.failed,
      async close(graceMs) {
        await started.close(graceMs)
        await database.close()
      },
    }
  } catch (error) {
    await database.close()
    throw error
  }
}

async function prepare({ db, backend }: OpenedDatabase, log: Log): Promise<void> {
  if (backend === 'postgresql') await refuseUnfitServer(db)
  const applied = await migrate(db)
  if (applied.length > 0) log.info('migrated', { migrations: applied.join(' ') })
}

function rejectionOf(stop: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    stop.throwIfAborted()
    stop.addEventListener('abort', () => reject(stop.reason as Error), { once: true })
  })
}

async function start(
  options: ProgramOptions,
  { db, backend }: OpenedDatabase,
): Promise<Pick<Program, 'addresses' | 'close'>> {
  const { config, log } = options
  const metrics = createMetrics()
  const listeners: RunningListener[] = []
  const services: Service[] = []
  const addresses: Addresses = () =>
    new Map(listeners.map(({ service, address }) => [service, address]))
  const secrets = configuredSecrets(config, randomBytes)
  const context = { ...options, secrets, metrics, db, addresses }
  let control: Server | undefined

  async function close(graceMs: number): Promise<void> {
    for (const service of services) service.endStreams?.()
    control?.close()
    control?.closeAllConnections()
    await Promise.all(listeners.map(({ listener }) => listener.close(graceMs)))
    await Promise.all(services.map((service) => service.close()))
  }

  try {
    // One after the other: each connection that more at once would need costs more than it saves.
    for (const name of options.services) services.push(await OPEN[name](context))
    const shared = {
      config,
      bodyBudget: createBodyBudget(256 * 1024 * 1024),
      log,
      metrics,
      httpMetrics: createHttpMetrics(metrics),
      clock: systemClock,
    }
    for (const service of services) listeners.push(await startListener(shared, service))
    if (backend === 'embedded') control = await startControl(context, services)
    for (const service of services) service.begin?.()
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
  services: readonly Service[],
): Promise<Server | undefined> {
  const { config, log } = context
  const path = controlPath(config.current.GATEHOUSE_DATA_DIR)
  try {
    return await openControl(
      path,
      async (argv, output, input) => {
        const forget = (slug: string): void => {
          for (const service of services) service.forgetLink?.(slug)
        }
        const here = { random: randomBytes, now: () => new Date(), forget }
        const code = await runInServer(argv, { ...context, ...here, output, input })
        // The change must count when the command ends; the database's notice may come later.
        await Promise.all(services.map((service) => service.refresh?.()))
        return code
      },
      log,
    )
  } catch (error) {
    log.warn('control socket not opened', { path, error: messageOf(error) })
    return undefined
  }
}
