import Type from 'typebox'
import { openConfig, type ConfigOptions, type ConfigSource as SourceOf } from '../kernel/config.ts'
import { programVariables, type VariableNotes } from '../kernel/variables.ts'
import { hooksVariables } from '../services/hooks/variables.ts'
import { linksVariables } from '../services/links/open.ts'
import { opsVariables } from '../services/ops/variables.ts'
import { isLoopbackName } from '../kernel/net/addresses.ts'
import type { OwnHosts } from '../services/links/loop.ts'

/**
 * Every variable. The name in lower case with dashes, without `GATEHOUSE_`, is its flag:
 * `HOOKS_ADDR` is `--hooks-addr`, `GATEHOUSE_DATA_DIR` is `--data-dir`.
 */
export const Variables = Type.Object({
  ...programVariables,
  ...hooksVariables,
  ...linksVariables,
  ...opsVariables,
})
export type VariableName = keyof typeof Variables.properties
export type ConfigSource = SourceOf<typeof Variables>

export const VARIABLE_NAMES = Object.keys(Variables.properties) as readonly VariableName[]

/** Reads the configuration of the program. */
export function openConfiguration(options: ConfigOptions): ConfigSource {
  return openConfig(Variables, options)
}

/** What a variable's schema says of it for people. */
export function notesOf(name: VariableName): VariableNotes {
  return Variables.properties[name] as unknown as VariableNotes
}

/**
 * The flag of a variable, without the dashes in front; a secret has none, as others can see
 * arguments.
 */
export function flagOf(name: VariableName): string | undefined {
  const { secret, flag } = notesOf(name)
  if (secret === true) return undefined
  return (flag ?? name.replace(/^GATEHOUSE_/, '').replaceAll('_', '-')).toLowerCase()
}

/** Each variable that is set, with where it comes from; a secret shows only that it is set. */
export function describeConfiguration(
  config: ConfigSource,
): readonly (readonly [string, string])[] {
  return [...config.origins].map(([name, { place, text, secret }]) => {
    return [name, `${secret ? 'set' : text} (${place})`] as const
  })
}

/** The line about names in the environment that Gatehouse does not know. */
export function ignoredText(unknownNames: readonly string[]): string {
  return `unknown in the environment and ignored: ${unknownNames.join(', ')}; see gatehouse help for the names that count`
}

/**
 * Whether a URL leads to one of our services: by its public address, by the address it listens on
 * (all loopback names count as one), or by the short keyword as a host name.
 */
export function ownHosts(addresses: () => readonly string[], keyword: () => string): OwnHosts {
  return (url) =>
    nameOf(url) === keyword() ||
    addresses().some((address) => URL.canParse(address) && isSamePlace(url, new URL(address)))
}

/** Whether a URL leads to links, according to the configuration and `addresses`. */
export function hostsOfLinks(config: ConfigSource, addresses?: Addresses): OwnHosts {
  function places(): readonly string[] {
    const base = serviceUrl('links', config, addresses)
    const listening = listeningUrl('links', config, addresses)
    return [base, listening].filter((place) => place !== undefined)
  }
  return ownHosts(places, () => shortKeyword(config, addresses))
}

/** The short-link prefix: configured, or the first label of the public address. */
export function shortKeyword(config: ConfigSource, addresses?: Addresses): string {
  const address = serviceUrl('links', config, addresses) ?? ''
  return config.current.LINKS_SHORT_KEYWORD ?? firstLabel(address)
}

function isSamePlace(url: URL, own: URL): boolean {
  if (url.port !== own.port) return false
  return nameOf(url) === nameOf(own) || [url, own].every((place) => isThisMachine(nameOf(place)))
}

/** The host without brackets and without a final dot, which changes nothing. */
function nameOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')
}

/** Includes the names and addresses that browsers and Linux treat as loopback. */
function isThisMachine(name: string): boolean {
  return isLoopbackName(name) || name.endsWith('.localhost') || name === '0.0.0.0' || name === '::'
}

/** The first DNS label of the host; the whole of an IP address. */
function firstLabel(address: string): string {
  const hostname = URL.canParse(address) ? new URL(address).hostname : ''
  const [label = ''] = hostname.split('.')
  return /^[\d.]+$|:/.test(hostname) ? hostname : label
}

/** Where each running service listens. */
export type Addresses = () => ReadonlyMap<ServiceName, string>

/** The configured address and public address of a service, and the variable of the address. */
export function placeOf(service: ServiceName, { current }: ConfigSource) {
  const name = service.toUpperCase() as Uppercase<ServiceName>
  const variable = `${name}_ADDR` as const
  return { variable, address: current[variable], baseUrl: current[`${name}_BASE_URL`] }
}

/**
 * The URL at which clients reach a service: its public address, else the one that it listens on.
 * Undefined for a unix socket, and without `addresses` for a port that only the server knows.
 */
export function serviceUrl(
  service: ServiceName,
  config: ConfigSource,
  addresses?: Addresses,
): string | undefined {
  return placeOf(service, config).baseUrl ?? listeningUrl(service, config, addresses)
}

/** The URL on which a service listens; undefined as in `serviceUrl`. */
function listeningUrl(
  service: ServiceName,
  config: ConfigSource,
  addresses?: Addresses,
): string | undefined {
  const bound = addresses?.().get(service)
  if (bound !== undefined) return bound.startsWith('http:') ? bound : undefined
  const { address } = placeOf(service, config)
  return address.kind === 'tcp' && address.port !== 0
    ? urlOf(address.host, address.port)
    : undefined
}

/** The URL of a host and port; an IPv6 address stands in brackets. */
export function urlOf(host: string, port: number): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}

export const SERVICES = ['hooks', 'links', 'ops'] as const
export type ServiceName = (typeof SERVICES)[number]
