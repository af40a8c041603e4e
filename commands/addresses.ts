import type { Address } from '../kernel/net/addresses.ts'
import { isLoopbackName } from '../kernel/net/addresses.ts'
import type { OwnHosts } from '../services/links/loop.ts'
import type { ConfigSource } from './configuration.ts'

/**
 * Whether a URL leads to one of our services: by its public address, by the address it listens on (all
 * loopback names count as one), or by the short keyword as a host name.
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

/** The configured address and public address of a service. */
export function placeOf(
  service: ServiceName,
  { current }: ConfigSource,
): { readonly address: Address; readonly baseUrl: string | undefined } {
  const { HOOKS_ADDR, LINKS_ADDR, OPS_ADDR, HOOKS_BASE_URL, LINKS_BASE_URL, OPS_BASE_URL } = current
  if (service === 'hooks') return { address: HOOKS_ADDR, baseUrl: HOOKS_BASE_URL }
  if (service === 'links') return { address: LINKS_ADDR, baseUrl: LINKS_BASE_URL }
  return { address: OPS_ADDR, baseUrl: OPS_BASE_URL }
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
export function listeningUrl(
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
