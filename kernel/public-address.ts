import { isIP } from 'node:net'
import { parseBlocks } from './peers.ts'

/** IPv4 addresses that are not the public internet: this host, private, link-local, reserved, a cloud's own. */
const isSpecialIpv4 = parseBlocks([
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  // Azure answers here in every virtual machine, with settings and certificates of that machine.
  '168.63.129.16/32',
  // Link-local: the metadata services of cloud providers are here.
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/3',
])

/** Public IPv6 is 2000::/3 without the ranges that document, tunnel or translate into other networks. */
const isGlobalIpv6 = parseBlocks(['2000::/3'])
const isSpecialIpv6 = parseBlocks(['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'])

/** True for an address on the public internet: only those are open to targets that nobody vouched for. */
export function isPublicAddress(address: string): boolean {
  if (isIP(address) === 6) return isGlobalIpv6(address) && !isSpecialIpv6(address)
  return isIP(address) === 4 && !isSpecialIpv4(address)
}
