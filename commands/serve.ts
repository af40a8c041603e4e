import type { Server } from 'node:http'
import { migrate } from '../db/migrate.ts'
import { openDatabase, type OpenedDatabase } from '../db/open.ts'
import { refuseUnfitServer } from '../db/server-facts.ts'
import { createBodyBudget } from '../kernel/body.ts'
import { systemClock } from '../kernel/clock.ts'
import type { ConfigSource } from '../kernel/config.ts'
import { createHttpMetrics } from '../kernel/http-metrics.ts'
import { messageOf, type Log } from '../kernel/log.ts'
import { createMetrics } from '../kernel/metrics.ts'
import type { SigningSecrets } from '../services/hooks/signing-secrets.ts'
import { DONE, FAILED } from './command.ts'
import { controlPath, openControl } from './control.ts'
import { refuseBeyondLoopback, startListener, type RunningListener } from './listeners.ts'
import { runOnDatabase } from './on-database.ts'
import type { Addresses } from './places.ts'
import { openServiceManager } from './service-manager.ts'
import type { ServiceName } from './service-names.ts'
import type { OpenService, Service, ServiceContext } from './services/service.ts'
import { stopSignal } from './stop-signal.ts'

/** The services, loaded when they are asked for. */
const OPEN: Readonly<Record<ServiceName, OpenService>> = {
  hooks: async (context) => (await import('./services/hooks.ts')).openHooksService(context),
  links: async (context) => (await import('./services/links.ts')).openLinksService(context),
  ops: async (context) => (await import('./services/ops.ts')).openOpsService(context),
}

/** Grace for running requests; with the rest of the stop it stays within ten seconds. */
const GRACE_MS = 7_000
const STOP_MS = 10_000

export interface ServeOptions {
  readonly config: ConfigSource
  readonly services: readonly ServiceName[]
  readonly secrets: SigningSecrets
  readonly version: string
  readonly log: Log
  /** Prints the ready line. */
  readonly ready: (line: string) => void
}

/** `gatehouse serve`: runs until a signal comes, and gives the exit code. */
export async function serve(options: ServeOptions): Promise<number> {
  const { config, log } = options
  process.umask(0o077)
  const stopAsked = stopSignal()
  await refuseBeyondLoopback(config, options.services)
  const { DATABASE_URL: url, GATEHOUSE_DATA_DIR: dataDirectory } = config.current
  const database = await openDatabase({ url, dataDirectory }, log)
  try {
    const prepared = prepare(database, log)
    // A migration may wait for another instance's, for as long as that takes.
    const signal = await Promise.race([stopAsked, prepared])
    if (signal === undefined) return await run(options, database, stopAsked)
    log.info('stopping', { signal })
    endInTime()
    return DONE
  } finally {
    await database.close()
    log.flush()
  }
}

/** Whatever a stop waits for, it waits no longer than this. */
function endInTime(): void {
  setTimeout(() => process.exit(FAILED), STOP_MS).unref()
}

/** Makes the database one that this program can use. */
async function prepare({ db, backend }: OpenedDatabase, log: Log): Promise<undefined> {
  if (backend === 'postgresql') await refuseUnfitServer(db)
  const applied = await migrate(db)
  if (applied.length > 0) log.info('migrated', { migrations: applied.join(' ') })
}

async function run(
  options: ServeOptions,
  { db, backend, failed: databaseFailed }: OpenedDatabase,
  stopAsked: Promise<string>,
): Promise<number> {
  const { config, version, log } = options
  const metrics = createMetrics()
  const listeners: RunningListener[] = []
  const addresses: Addresses = () =>
    new Map(listeners.map(({ service, address }) => [service, address()]))
  const context = { ...options, metrics, db, addresses }
  const services: Service[] = []
  const manager = openServiceManager(log)
  let control: Server | undefined
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
    for (const { name, parts } of services) listeners.push(await startListener(shared, name, parts))
    if (backend === 'embedded') control = await startControl(context, services)
    const where = [...addresses()].map(([service, address]) => `${service}=${address}`).join(' ')
    options.ready(`gatehouse ${version} ready ${where}`)
    log.info('ready', { version, backend, addresses: where })
    manager.ready(where)
    for (const service of services) service.begin?.()

    const reason = await Promise.race([stopAsked, databaseFailed])
    const failed = reason instanceof Error
    if (failed) log.error('embedded database died', { error: messageOf(reason) })
    else log.info('stopping', { signal: reason })
    return failed ? FAILED : DONE
  } finally {
    manager.stopping()
    // Also when one listener could not start: what already runs would keep the process alive.
    endInTime()
    for (const service of services) service.endStreams?.()
    control?.close()
    control?.closeAllConnections()
    await Promise.all(listeners.map(({ listener }) => listener.close(GRACE_MS)))
    await Promise.all(services.map((service) => service.close()))
    log.info('stopped')
  }
}

/** Without the socket the services still run; other commands then say that the database is held. */
async function startControl(
  context: ServiceContext,
  services: readonly Service[],
): Promise<Server | undefined> {
  const { config, log, db } = context
  const path = controlPath(config.current.GATEHOUSE_DATA_DIR)
  try {
    return await openControl(
      path,
      async (argv, output, input) => {
        const forget = (slug: string): void => {
          for (const service of services) service.forgetLink?.(slug)
        }
        const code = await runOnDatabase(argv, db, { ...context, forget }, output, input)
        // When the command has ended, its change counts: the notice of it may come later.
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
