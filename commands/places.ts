import type { Address } from '../kernel/net/addresses.ts'
import type { ConfigSource } from '../kernel/config.ts'
import type { ServiceName } from './service-names.ts'

/** Where each running service listens, as its listener says it. */
export type Addresses = () => ReadonlyMap<ServiceName, string>

/** Where a service listens, and its public address, as they are configured. */
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
 * Where clients reach a service: its public address, else the one that it listens on; undefined for a unix
 * socket, and for what only the process that listens knows, when `addresses` does not tell.
 */
export function serviceUrl(
  service: ServiceName,
  config: ConfigSource,
  addresses?: Addresses,
): string | undefined {
  return placeOf(service, config).baseUrl ?? listeningUrl(service, config, addresses)
}

/** The same without the public address. */
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
