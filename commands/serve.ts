import { randomBytes } from 'node:crypto'
import type { Server } from 'node:http'
import { databaseAnswers } from '../db/answers.ts'
import { migrate } from '../db/migrate.ts'
import { openDatabase, type OpenedDatabase } from '../db/open.ts'
import { systemClock } from '../kernel/clock.ts'
import type { ConfigSource } from '../kernel/config.ts'
import { createHttpMetrics } from '../kernel/http-metrics.ts'
import { messageOf, type Log } from '../kernel/log.ts'
import { createMetrics } from '../kernel/metrics.ts'
import { identityReader } from '../kernel/identity.ts'
import { post } from '../kernel/outbound.ts'
import { hooksFault } from '../routes/hooks/faults.ts'
import { hooksRoutes } from '../routes/hooks/routes.ts'
import { linksFault, NOT_FOUND } from '../routes/links/faults.ts'
import type { LinksRoutes } from '../routes/links/options.ts'
import { linksRoutes, unmatchedLinks } from '../routes/links/routes.ts'
import { OPS_NOT_BUILT, opsFault, opsRoutes } from '../routes/ops/routes.ts'
import { openHooks, type Hooks } from '../services/hooks/open.ts'
import { openLinks, type Links } from '../services/links/open.ts'
import type { QueueSource } from '../services/hooks/queue/open.ts'
import type { SigningSecrets } from '../services/hooks/signing-secrets.ts'
import { DONE, FAILED } from './command.ts'
import { controlPath, openControl } from './control.ts'
import {
  NO_ROUTE,
  startListener,
  type RunningListener,
  type ServiceName,
  type ServiceParts,
} from './listeners.ts'
import { runOnDatabase } from './on-database.ts'
import { firstLabel, ownHosts } from './own-hosts.ts'
import { shownConfiguration } from './shown-configuration.ts'
import { stopSignal } from './stop-signal.ts'

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
  const { DATABASE_URL: url, GATEHOUSE_DATA_DIR: dataDirectory } = config.current
  const database = await openDatabase({ url, dataDirectory }, log)
  try {
    const applied = await migrate(database.db)
    if (applied.length > 0) log.info('migrated', { migrations: applied.join(' ') })
    return await run(options, database, stopAsked)
  } finally {
    await database.close()
    log.flush()
  }
}

async function run(
  options: ServeOptions,
  database: OpenedDatabase,
  stopAsked: Promise<string>,
): Promise<number> {
  const { config, secrets, version, log } = options
  const { db, backend } = database
  const metrics = createMetrics()
  const hooks = await openHooks({
    db,
    vacuums: backend === 'embedded',
    secrets,
    clock: systemClock,
    random: randomBytes,
    post,
    replayTargets: () => config.current.HOOKS_REPLAY_TARGETS,
    log,
    metrics,
    maxBody: () => config.current.HOOKS_MAX_BODY,
    queueSource: queueSource(options),
  })
  const listeners: RunningListener[] = []
  const linksPlace = linksAddress(options, () => listeners)
  const links = await openLinks({
    db,
    clock: systemClock,
    random: randomBytes,
    log,
    metrics,
    ownHosts: ownHosts(linksPlace.all, linksPlace.keyword),
  })
  let control: Server | undefined
  try {
    const shared = {
      config,
      bodyBudget: { used: 0, limit: 256 * 1024 * 1024 },
      log,
      metrics,
      httpMetrics: createHttpMetrics(metrics),
      clock: systemClock,
    }
    for (const service of options.services) {
      listeners.push(
        await startListener(shared, service, (address) =>
          partsOf(service, options, { hooks, links }, address),
        ),
      )
    }
    if (backend === 'embedded') control = await startControl(options, hooks, links)
    const addresses = listeners.map(({ service, address }) => `${service}=${address()}`)
    options.ready(`gatehouse ${version} ready ${addresses.join(' ')}`)
    log.info('ready', { version, backend, addresses: addresses.join(' ') })

    const reason = await Promise.race([stopAsked, database.failed])
    const failed = reason instanceof Error
    if (failed) log.error('embedded database died', { error: messageOf(reason) })
    else log.info('stopping', { signal: reason })
    return failed ? FAILED : DONE
  } finally {
    // Also when one listener could not start: what already runs would keep the process alive.
    setTimeout(() => process.exit(FAILED), STOP_MS).unref()
    hooks.endStreams()
    control?.close()
    control?.closeAllConnections()
    await Promise.all(listeners.map(({ listener }) => listener.close(GRACE_MS)))
    await Promise.all([hooks.close(), links.close()])
    log.info('stopped')
  }
}

/** What a service's listener serves. */
function partsOf(
  service: ServiceName,
  { config, version }: ServeOptions,
  { hooks, links }: { readonly hooks: Hooks; readonly links: Links },
  address: () => string,
): ServiceParts {
  const answers = (): Promise<boolean> => databaseAnswers(hooks.db)
  if (service === 'links') {
    const parts: LinksRoutes = {
      links,
      version,
      baseUrl: () => config.current.LINKS_BASE_URL ?? address(),
      shortKeyword: () => keywordOf(config, address()),
      identify: identityReader({
        trustedProxies: config.current.GATEHOUSE_TRUSTED_PROXIES,
        userHeader: () => config.current.GATEHOUSE_USER_HEADER,
      }),
    }
    const unmatched = unmatchedLinks(parts)
    const routes = linksRoutes(parts, answers)
    return { routes, faultReply: linksFault, noRoute: NOT_FOUND, unmatched }
  }
  if (service === 'ops') {
    const routes = opsRoutes(version, answers)
    return { routes, faultReply: opsFault, noRoute: OPS_NOT_BUILT }
  }
  const routes = hooksRoutes({
    hooks,
    version,
    baseUrl: () => config.current.HOOKS_BASE_URL ?? address(),
    maxBody: () => config.current.HOOKS_MAX_BODY,
    freshnessSeconds: () => config.current.HOOKS_FRESHNESS_S,
    overlapSeconds: () => config.current.HOOKS_ROTATION_OVERLAP_S,
    configuration: () => shownConfiguration(config),
  })
  return { routes, faultReply: hooksFault, noRoute: NO_ROUTE }
}

/** The short-link prefix: configured, or the first label of the public address. */
function keywordOf({ current }: ConfigSource, address: string): string {
  return current.LINKS_SHORT_KEYWORD ?? firstLabel(current.LINKS_BASE_URL ?? address)
}

/** Where the links service is reached, known once its listener runs. */
function linksAddress({ config }: ServeOptions, listeners: () => readonly RunningListener[]) {
  const bound = (): string =>
    listeners()
      .find(({ service }) => service === 'links')
      ?.address() ?? ''
  return {
    all: () => [config.current.LINKS_BASE_URL ?? '', bound()],
    keyword: () => keywordOf(config, bound()),
  }
}

/** Where the hooks service reads a queue: both variables or none; one alone is said and not used. */
function queueSource({ config, services, log }: ServeOptions): QueueSource | undefined {
  const { HOOKS_QUEUE_URL: url, HOOKS_QUEUE_CHANNELS: channels } = config.current
  if (!services.includes('hooks')) return undefined
  if (url !== undefined && channels !== undefined) return { url, channels }
  if (url !== undefined) log.warn('no queue is read: HOOKS_QUEUE_CHANNELS is not set')
  if (channels !== undefined) log.warn('no queue is read: HOOKS_QUEUE_URL is not set')
  return undefined
}

/** Without the socket the services still run; other commands then say that the database is held. */
async function startControl(
  options: ServeOptions,
  hooks: Hooks,
  { forget }: Links,
): Promise<Server | undefined> {
  const { config, log } = options
  const path = controlPath(config.current.GATEHOUSE_DATA_DIR)
  try {
    return await openControl(
      path,
      async (argv, output, input) => {
        const code = await runOnDatabase(argv, hooks.db, { ...options, forget }, output, input)
        // When the command has ended, its change counts: the notice of it may come later.
        await hooks.registry.refresh()
        return code
      },
      log,
    )
  } catch (error) {
    log.warn('control socket not opened', { path, error: messageOf(error) })
    return undefined
  }
}
