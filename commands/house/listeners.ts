import { lookup } from 'node:dns/promises'
import { chmod } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import type { Database } from '../../db/client.ts'
import { ConfigError } from '../../kernel/config.ts'
import { NO_ROUTE, type Fault } from '../../kernel/fault.ts'
import { createListener, type ListenerOptions } from '../../kernel/http/listener.ts'
import type { FaultReply } from '../../kernel/http/reply.ts'
import type { HttpMetrics } from '../../kernel/http/request-log.ts'
import { createRouter, type Route, type Fallback } from '../../kernel/http/router.ts'
import type { Log } from '../../kernel/log.ts'
import type { Metrics } from '../../kernel/metrics.ts'
import { hostName, isLocal, type AddressSet } from '../../kernel/net/addresses.ts'
import type { Outbound } from '../../kernel/net/outbound.ts'
import { listenOptions, removeDeadSocket, type Address } from '../../kernel/net/listen.ts'
import { createGuard } from '../../kernel/net/guard.ts'
import { identityReader } from '../../kernel/net/identity.ts'
import type { Clock } from '../../kernel/time.ts'
import { openFilesLimit } from '../../kernel/processes/self.ts'
import { metricsRoute, type RenderMetrics } from '../../routes/monitoring.ts'
import type { SigningSecrets } from '../../services/hooks/receive/schemes/signing-secrets.ts'
import {
  placeOf,
  urlOf,
  type ServiceName,
  type Addresses,
  type ConfigSource,
  flagOf,
} from '../frame/configuration.ts'
import { listenProblem } from './listen-problem.ts'

/** What a running program gives each of its services. */
export interface ServiceContext {
  config: ConfigSource
  secrets: SigningSecrets
  version: string
  log: Log
  metrics: Metrics
  db: Database
  /** Where each running service listens, once its listener does. */
  addresses: Addresses
  /** How other programs are reached; `kernel/net/outbound.ts` when absent. */
  outbound?: Outbound
  clock: Clock
}

/** A service as `serve` runs it. */
export interface Service {
  name: ServiceName
  routes: readonly Route[]
  faultReply: FaultReply
  /** Answers requests that match no route, instead of 404 and 405. */
  fallback?: Fallback
  /** The reply to a path that no route has, in other words than `NO_ROUTE`. */
  noRoute?: Fault
  /**
   * Takes the links of a snapshot, which it serves without the database, and says how many these
   * are and when they were written; undefined without a snapshot.
   */
  restore?: () => Promise<{ links: number; written: string } | undefined>
  /** Makes what it needs in the migrated database. */
  prepare?: () => Promise<void>
  /** Starts background work; all listeners are up. */
  begin?: () => void
  /** Reads again what a command may have changed in the database. */
  refresh?: () => Promise<void>
  /** Forgets a link that a command has changed. */
  forgetLink?: (slug: string) => void
  /** Ends streams when the program stops, so that running requests can finish. */
  endStreams?: () => void
  close: () => Promise<void>
}

export type OpenService = (context: ServiceContext) => Promise<Service>

/** What all listeners of a process share. */
type SharedParts = Pick<ListenerOptions, 'bodyBudget' | 'waiting' | 'log' | 'clock'> & {
  config: ConfigSource
  renderMetrics: RenderMetrics
  httpMetrics: HttpMetrics
}

/**
 * Each service has its own part of the connections, so that no service can use up those of another.
 * Deliveries get the largest part.
 */
const PART_OF_CONNECTIONS = { hooks: 1 / 2, links: 1 / 4, ops: 1 / 4 }
/** Files left for the database, programs and what is sent; the embedded database opens 150. */
const OTHER_FILES = 400

/** How many connections a service may have, of the files that the process may have open. */
function maxConnections(service: ServiceName) {
  const files = openFilesLimit()
  const inAll = Math.max(files - OTHER_FILES, files / 2)
  return Math.floor(inAll * PART_OF_CONNECTIONS[service])
}

/** A listener with its address: `http://…`, `unix:/path`, or `fd:NAME` of a unix socket. */
export type RunningListener = Awaited<ReturnType<typeof startListener>>

/**
 * Refuses an address beyond loopback when no proxy is trusted, before anything is opened or
 * written.
 */
export async function refuseBeyondLoopback(
  config: ConfigSource,
  services: readonly ServiceName[],
): Promise<void> {
  if (config.current.GATEHOUSE_TRUSTED_PROXIES !== undefined) return
  for (const service of services) {
    const { variable, address } = placeOf(service, config)
    if (address.kind !== 'tcp') continue
    if (!isLocal(await lookup(address.host))) throw beyondLoopback(variable)
  }
}

/** Starts a service's listener. A socket from systemd is checked here, by its bound address. */
export async function startListener(
  { config, renderMetrics, httpMetrics, ...shared }: SharedParts,
  { name: service, routes, fallback, faultReply, noRoute = NO_ROUTE }: Service,
) {
  const { variable, address: configured } = placeOf(service, config)
  // As they are at each request: these variables count at once.
  const trustedProxies: AddressSet = (address) =>
    config.current.GATEHOUSE_TRUSTED_PROXIES?.(address) === true
  const identityHeaders = {
    userHeader: () => config.current.GATEHOUSE_USER_HEADER,
    groupsHeader: () => config.current.GATEHOUSE_GROUPS_HEADER,
  }

  const listener = createListener({
    ...shared,
    service,
    find: createRouter([...routes, metricsRoute(renderMetrics)], fallback),
    noRoute,
    faultReply,
    guard: createGuard({
      hosts: hostsOf(service, config),
      trustedProxies,
      ...identityHeaders,
    }),
    trustedProxies,
    identify: identityReader({
      trustedProxies: () => config.current.GATEHOUSE_TRUSTED_PROXIES,
      ...identityHeaders,
    }),
    metrics: httpMetrics,
    maxConnections: maxConnections(service),
  })
  if (configured.kind === 'unix') await removeDeadSocket(configured.path)
  const place = listenOptions(configured, config.inheritedSockets)
  try {
    await listener.listen(place)
  } catch (error) {
    const address = config.origins.get(variable)?.text ?? ''
    const named = { variable, flag: flagOf(variable) ?? '', address }
    throw new Error(await listenProblem(named, place, error), { cause: error })
  }
  // Until then nobody but this user could connect.
  if (configured.kind === 'unix') await chmod(configured.path, configured.mode)
  const bound = listener.server.address()
  if (config.current.GATEHOUSE_TRUSTED_PROXIES === undefined && !isLocal(bound)) {
    await listener.close(0)
    throw beyondLoopback(variable)
  }
  return { service, listener, address: addressText(bound, configured) }
}

/** The host names of a service; a change of the configuration makes them again. */
function hostsOf(service: ServiceName, config: ConfigSource) {
  let { current } = config
  let hosts = new Set<string>()
  function read() {
    const { address, baseUrl } = placeOf(service, config)
    hosts = new Set(baseUrl === undefined ? [] : [hostName(new URL(baseUrl).host)])
    if (address.kind === 'tcp') hosts.add(address.host.toLowerCase())
  }
  read()
  return () => {
    if (current !== config.current) read()
    current = config.current
    return hosts
  }
}

function addressText(bound: string | AddressInfo | null, configured: Address) {
  if (typeof bound === 'string') return `unix:${bound}`
  if (bound !== null) return urlOf(bound.address, bound.port)
  // Node does not know the path of a unix socket that was passed.
  return configured.kind === 'fd' ? `fd:${configured.name}` : ''
}

export function beyondLoopback(what: string): ConfigError {
  return new ConfigError(
    `${what} is beyond loopback: set GATEHOUSE_TRUSTED_PROXIES to the proxy ` +
      'that authenticates, or listen on 127.0.0.1',
  )
}
