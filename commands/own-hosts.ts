import { isLoopbackName } from '../kernel/guard.ts'
import type { OwnHosts } from '../services/links/loop.ts'

/**
 * Whether a URL leads to the links service: by its public address, by the address it listens on (a
 * loopback name is as good as another), or by the short keyword as a host name.
 */
export function ownHosts(addresses: () => readonly string[], keyword: () => string): OwnHosts {
  return (url) =>
    url.hostname === keyword() ||
    addresses().some((address) => URL.canParse(address) && isSamePlace(url, new URL(address)))
}

function isSamePlace(url: URL, own: URL): boolean {
  if (url.port !== own.port) return false
  return url.hostname === own.hostname || [url, own].every((place) => isLoopback(place))
}

function isLoopback({ hostname }: URL): boolean {
  return isLoopbackName(hostname.replace(/^\[|\]$/g, ''))
}

/** The first DNS label of an address's host; an IP address has none and is taken whole. */
export function firstLabel(address: string): string {
  const hostname = URL.canParse(address) ? new URL(address).hostname : ''
  const [label = ''] = hostname.split('.')
  return /^[\d.]+$|:/.test(hostname) ? hostname : label
}
