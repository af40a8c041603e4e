import { join } from 'node:path'
import type { ConfigSource as SourceOf, Origin } from '../../kernel/config.ts'
import { programVariables, type Variable } from '../../kernel/variables.ts'
import { EVENT_VARIABLES, hooksVariables } from '../../services/hooks/variables.ts'
import { linksVariables } from '../../services/links/open.ts'
import { opsVariables } from '../../services/ops/variables.ts'
import { isLoopbackName } from '../../kernel/net/addresses.ts'
import type { RecoverySchedule } from '../../services/hooks/receive/recoveries/schedule.ts'
import type { OwnHosts } from '../../services/links/names/links/loop.ts'
import type { Schemes } from '../../services/links/names/links/schemes.ts'
import type { SnapshotPlace } from '../../services/links/visits/visits/snapshot.ts'

/**
 * Every variable. The name in lower case with dashes, without `GATEHOUSE_`, is its flag:
 * `HOOKS_ADDR` is `--hooks-addr`, `GATEHOUSE_DATA_DIR` is `--data-dir`.
 */
export const VARIABLES = {
  ...programVariables,
  ...hooksVariables,
  ...linksVariables,
  ...opsVariables,
}
export type VariableName = keyof typeof VARIABLES
export type ConfigSource = SourceOf<typeof VARIABLES>

/** The variable by which an instance knows its number; nobody sets it by hand. */
export const NUMBER_VARIABLE = 'GATEHOUSE_INSTANCE'

/**
 * Names with our prefixes that are not variables: an instance's number, and what programs of
 * `forward --exec` inherit.
 */
export const OTHER_NAMES = [NUMBER_VARIABLE, ...Object.values(EVENT_VARIABLES)]

export const VARIABLE_NAMES = Object.keys(VARIABLES) as readonly VariableName[]

/** Whether the values of variables are known; one that is wrong stands for its default. */
export function areKnown({ problems }: ConfigSource, names: readonly VariableName[]) {
  const wrong = problems.flatMap(({ variables }) => variables)
  return !names.some((name) => wrong.includes(name))
}

/** A row of the table. */
export function variableOf(name: VariableName): Variable<unknown> {
  return VARIABLES[name]
}

/**
 * The flag of a variable, without its dashes. Secrets have no flag, because other users can see
 * arguments.
 */
export function flagOf(name: VariableName) {
  const { secret, flag } = variableOf(name)
  if (secret === true) return undefined
  const short = flag ?? name.replace(/^GATEHOUSE_/, '')
  return short.replaceAll('_', '-').toLowerCase()
}

/** The flags that set a variable, without their dashes, each with its variable. */
export const CONFIG_FLAGS: ReadonlyMap<string, string> = new Map([
  ['env-file', 'GATEHOUSE_ENV_FILE'],
  ...VARIABLE_NAMES.flatMap((name) => {
    const flag = flagOf(name)
    return flag === undefined ? [] : [[flag, name] as const]
  }),
])

/**
 * Each variable that is set, with where it comes from, and what waits for the next start; a secret
 * shows only that it is set.
 */
export function describeConfiguration({ origins, waiting }: ConfigSource) {
  const names = VARIABLE_NAMES.filter((name) => origins.has(name) || waiting.has(name))
  return names.map((name) => {
    const shown = shownValue(origins.get(name))
    const next = waiting.has(name) ? `; from the next start: ${shownValue(waiting.get(name))}` : ''
    return [name, shown + next] as const
  })
}

function shownValue(origin: Origin | undefined) {
  if (origin === undefined) return 'not set'
  const { place, text, secret } = origin
  return `${secret ? 'set' : text} (${place})`
}

/** The line about names in the environment that Gatehouse does not know. */
export function ignoredText(unknownNames: readonly string[]) {
  const names = unknownNames.join(', ')
  return (
    `unknown in the environment and ignored: ${names}; ` +
    'see gatehouse help settings for the names that count'
  )
}

/** Whether a URL leads to one of some addresses; all loopback names count as one. */
export function ownHosts(addresses: () => readonly (string | undefined)[]): OwnHosts {
  return (url) =>
    addresses().some((address) => {
      const own = URL.parse(address ?? '')
      return own !== null && isSamePlace(url, own)
    })
}

/**
 * Whether a URL leads to links: by its public address, by the address it listens on, or by the
 * short keyword as a host name.
 */
export function hostsOfLinks(config: ConfigSource, addresses?: Addresses): OwnHosts {
  const hasAddress = ownHosts(() => [
    serviceUrl('links', config, addresses),
    listeningUrl('links', config, addresses),
  ])
  return (url) => {
    if (!/^https?:$/.test(url.protocol)) return false
    return nameOf(url) === shortKeyword(config, addresses) || hasAddress(url)
  }
}

/** The short-link prefix: configured, or the first label of the public address. */
export function shortKeyword(config: ConfigSource, addresses?: Addresses) {
  const address = serviceUrl('links', config, addresses) ?? ''
  return config.current.LINKS_SHORT_KEYWORD ?? firstLabel(address)
}

/** Schemes beside http and https that links may lead to. */
export function linkSchemes({ current }: ConfigSource): Schemes {
  return current.LINKS_SCHEMES ?? new Set()
}

/** Where the snapshot of links is; undefined with the embedded database. */
export function snapshotPlace({ current }: ConfigSource): SnapshotPlace | undefined {
  const { DATABASE_URL: url, GATEHOUSE_DATA_DIR: folder } = current
  return url === undefined ? undefined : { path: join(folder, 'links-snapshot.jsonl'), url }
}

/** Why the services can't run in as many processes as configured; undefined if they can. */
export function instancesProblem({ current }: ConfigSource): string | undefined {
  const { DATABASE_URL: url, GATEHOUSE_INSTANCES: count } = current
  if (count === 1 || url !== undefined) return undefined
  return `GATEHOUSE_INSTANCES is ${count}, and the embedded database serves one process: set DATABASE_URL`
}

/** Whether links may be given to groups: without a trusted proxy, nobody would be a member. */
export function takesGroups({ current }: ConfigSource): boolean {
  return [current.GATEHOUSE_GROUPS_HEADER, current.GATEHOUSE_TRUSTED_PROXIES].every(
    (value) => value !== undefined,
  )
}

function isSamePlace(url: URL, own: URL) {
  if (url.port !== own.port) return false
  const name = nameOf(url)
  const ownName = nameOf(own)
  return name === ownName || (isThisMachine(name) && isThisMachine(ownName))
}

/** The host without brackets and without a final dot, which changes nothing. */
function nameOf({ hostname }: URL) {
  return hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')
}

/** Includes the names and addresses that browsers and Linux treat as loopback. */
function isThisMachine(name: string) {
  if (name === '0.0.0.0' || name === '::') return true
  return isLoopbackName(name) || name.endsWith('.localhost')
}

/** The first DNS label of the host; the whole of an IP address. */
function firstLabel(address: string) {
  const { hostname = '' } = URL.parse(address) ?? {}
  const [label = ''] = hostname.split('.')
  return /^[\d.]+$|:/.test(hostname) ? hostname : label
}

/** What hooks looks up at senders. */
export function recoverySchedule({ current }: ConfigSource): RecoverySchedule {
  return {
    sources: current.HOOKS_RECOVER ?? [],
    intervalSeconds: current.HOOKS_RECOVER_INTERVAL_S,
    githubApi: current.HOOKS_RECOVER_GITHUB_API,
    tokens: {
      github: current.HOOKS_RECOVER_GITHUB_TOKEN,
      stripe: current.HOOKS_RECOVER_STRIPE_KEY,
    },
  }
}

/** Where each running service listens. */
export type Addresses = () => ReadonlyMap<ServiceName, string>

/** The configured address and public address of a service, and the variable of the address. */
export function placeOf(service: ServiceName, { current }: ConfigSource) {
  const name = service.toUpperCase() as Uppercase<ServiceName>
  const variable = `${name}_ADDR` as const
  return {
    variable,
    address: current[variable],
    baseUrl: current[`${name}_BASE_URL`],
  }
}

/**
 * The URL at which clients reach a service: its public address, else the one that it listens on.
 * Undefined for a unix socket, and without `addresses` for a port that only the server knows.
 */
export function serviceUrl(service: ServiceName, config: ConfigSource, addresses?: Addresses) {
  return placeOf(service, config).baseUrl ?? listeningUrl(service, config, addresses)
}

/** The services of this process that a browser can reach, in the order of `SERVICES`. */
export function runningServices(config: ConfigSource, addresses: Addresses) {
  return SERVICES.filter((name) => addresses().has(name)).flatMap((name) => {
    const href = serviceUrl(name, config, addresses)
    return href === undefined ? [] : [{ name, href }]
  })
}

/** The URL on which a service listens; undefined as in `serviceUrl`. */
export function listeningUrl(service: ServiceName, config: ConfigSource, addresses?: Addresses) {
  const bound = addresses?.().get(service)
  if (bound !== undefined) return bound.startsWith('http:') ? bound : undefined
  const { address } = placeOf(service, config)
  if (address.kind !== 'tcp' || address.port === 0) return undefined
  return urlOf(address.host, address.port)
}

export function urlOf(host: string, port: number) {
  return `http://${hostAndPort(host, port)}`
}

/** An IPv6 address stands in brackets. */
export function hostAndPort(host: string, port: number) {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

export const SERVICES = ['hooks', 'links', 'ops'] as const
export type ServiceName = (typeof SERVICES)[number]

export function isServiceName(word: string): word is ServiceName {
  return SERVICES.some((service) => service === word)
}
