import { isIP, BlockList, type Server } from 'node:net'

/**
 * True when an address is out of reach for other hosts; a host name is judged by what it resolves
 * to.
 */
export function isLocal(bound: string | { address: string } | null): boolean {
  if (bound === null || typeof bound === 'string') return true
  return isLoopback(unmapAddress(bound.address))
}

/**
 * IPv4 addresses that are not the public internet: this host, private, link-local, reserved, a
 * cloud's own.
 */
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

/**
 * Public IPv6 is 2000::/3 without the ranges that document, tunnel or translate into other
 * networks.
 */
const isGlobalIpv6 = parseBlocks(['2000::/3'])
const isSpecialIpv6 = parseBlocks(['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'])

/** Addresses that a network with NAT64 makes of IPv4 ones (RFC 6052), also a private one (RFC 8215). */
const isNat64 = parseBlocks(['64:ff9b::/96'])
const isLocalNat64 = parseBlocks(['64:ff9b:1::/48'])
/** No host has such an address: bits that are read there are none of an address. */
const isNowhere = parseBlocks(['0.0.0.0/8'])

/**
 * True for an address on the public internet: only those are open to targets that nobody vouched
 * for. An address of NAT64 leads to the IPv4 address inside.
 */
export function isPublicAddress(address: string): boolean {
  if (isIP(address) === 4) return !isSpecialIpv4(address)
  if (isIP(address) !== 6) return false
  if (isNat64(address)) return !isSpecialIpv4(embeddedIpv4(address, 96))
  if (isLocalNat64(address)) return isPublicInside(address)
  return isGlobalIpv6(address) && !isSpecialIpv6(address)
}

/** The lengths of a prefix within 64:ff9b:1::/48, behind which the IPv4 address stands. */
const LOCAL_LENGTHS = [48, 56, 64, 96] as const

/**
 * Which length the local network uses is not known here. So all that may be read as an IPv4
 * address must be public: a name could otherwise lead to a private one under another length.
 */
function isPublicInside(address: string): boolean {
  const inside = LOCAL_LENGTHS.map((length) => embeddedIpv4(address, length))
  const read = inside.filter((one) => !isNowhere(one))
  return read.length > 0 && read.every((one) => !isSpecialIpv4(one))
}

/** The IPv4 address behind a prefix (RFC 6052 section 2.2): bits 64 to 71 belong to none. */
function embeddedIpv4(address: string, length: number): string {
  const bytes = bytesOfIpv6(address).toSpliced(8, 1)
  const start = length > 64 ? length / 8 - 1 : length / 8
  return bytes.slice(start, start + 4).join('.')
}

function bytesOfIpv6(address: string): readonly number[] {
  // The URL parser writes all 128 bits as groups of hex digits, with at most one gap.
  const [before = '', after] = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::')
  const groups = (text: string) => (text === '' ? [] : text.split(':'))
  const [head, tail] = [groups(before), groups(after ?? '')]
  const gap = Array.from({ length: 8 - head.length - tail.length }, () => '0')
  return [...head, ...gap, ...tail].flatMap((group) => {
    const value = Number.parseInt(group, 16)
    return [value >> 8, value & 0xff]
  })
}

/** Which addresses a set of CIDR blocks holds. */
export type AddressSet = (address: string) => boolean

const LOOPBACK = parseBlocks(['127.0.0.0/8', '::1/128'])

/**
 * Parses `10.0.0.0/8`, `fd00::/8` or single addresses; throws a RangeError that counts to the bad
 * one.
 */
export function parseBlocks(blocks: readonly string[]): AddressSet {
  const list = new BlockList()
  for (const [at, block] of blocks.entries()) {
    const [address = '', bits, ...rest] = block.split('/')
    const family = isIP(address)
    const prefix = bits === undefined ? (family === 6 ? 128 : 32) : Number(bits)
    // An empty prefix is refused: Number('') is 0, which would be everybody.
    const isPrefix = bits === undefined || /^\d{1,3}$/.test(bits)
    if (family === 0 || !isPrefix || prefix > (family === 6 ? 128 : 32) || rest.length > 0) {
      throw new RangeError(`entry ${at + 1} is not a CIDR block`)
    }
    list.addSubnet(address, prefix, family === 6 ? 'ipv6' : 'ipv4')
  }
  return (address) => {
    const family = isIP(address)
    return family !== 0 && list.check(address, family === 6 ? 'ipv6' : 'ipv4')
  }
}

/** True for 127.0.0.0/8 and ::1. */
export function isLoopback(address: string): boolean {
  // Asked of nearly every request, and nearly always of this one.
  return address === '127.0.0.1' || LOOPBACK(address)
}

/** An IPv4 address that is written as an IPv6 one (`::ffff:203.0.113.7`) in its own form. */
function unmapAddress(address: string) {
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address
}

/**
 * Reads the peer of each connection once, when the server accepts it: TCP names no address any
 * more for a client that has reset its connection, though its bytes can still be read. A
 * connection whose peer is unknown is ended. A unix socket has no addresses and counts as
 * loopback: its permissions are its guard.
 */
export function watchPeers(server: Server): (socket: object) => string | undefined {
  const peers = new WeakMap<object, string>()
  let isUnixSocket = false
  server.on('listening', () => {
    const address = server.address()
    // Node knows no path of a unix socket that systemd passed.
    isUnixSocket = address === null || typeof address === 'string'
  })
  server.on('connection', (socket) => {
    const { remoteAddress = '' } = socket
    if (isUnixSocket) peers.set(socket, '127.0.0.1')
    else if (remoteAddress !== '') peers.set(socket, unmapAddress(remoteAddress))
    else socket.destroy()
  })
  return (socket) => peers.get(socket)
}

/**
 * Who sent the request: the peer, or, when the peer is a trusted proxy, the right-most entry of
 * `X-Forwarded-For` that is not itself a trusted proxy. An entry that is no address ends the
 * search.
 */
export function clientAddress(
  peer: string,
  forwardedFor: string | undefined,
  trusted: AddressSet,
): string {
  if (forwardedFor === undefined || !trusted(peer)) return peer
  let client = peer
  for (const entry of forwardedFor.split(',').reverse()) {
    const address = unmapAddress(stripPort(entry.trim()))
    if (isIP(address) === 0) break
    client = address
    if (!trusted(address)) break
  }
  return client
}

function stripPort(entry: string) {
  const bracketed = /^\[([^\]]+)\](?::\d+)?$/.exec(entry)
  if (bracketed !== null) return bracketed[1] ?? ''
  return /^\d+\.\d+\.\d+\.\d+:\d+$/.test(entry) ? entry.replace(/:\d+$/, '') : entry
}

/** The name in a Host header or authority, lower case, without port and brackets. */
export function hostName(authority: string | undefined): string {
  const text = (authority ?? '').toLowerCase()
  const bracketed = /^\[([^\]]*)\](?::\d*)?$/.exec(text)
  return bracketed === null ? text.replace(/:\d*$/, '') : (bracketed[1] ?? '')
}

/** True for `localhost` and loopback addresses. */
export function isLoopbackName(name: string): boolean {
  return name === 'localhost' || isLoopback(name)
}

/** Whether a list of hosts names the one that a URL leads to. */
export type HostSet = (url: URL) => boolean

const ENTRY = /^(\[[\da-f:.]+\]|[^\s:/?#@[\]]+)(?::(\d{1,5}))?$/i

/** The accepted form of a list of hosts, in words. */
export const HOSTS_FORM = 'a comma-separated list of host or host:port'

/**
 * Parses `localhost:3000, 10.0.0.5, [::1]`: an entry without a port means every port. Throws a
 * SyntaxError that counts to the bad entry and does not quote it: it may be a URL with a password.
 */
export function parseHosts(text: string): HostSet {
  const entries = text.split(',').map((entry, at) => parseEntry(entry.trim(), at + 1))
  return (url) =>
    entries.some(
      ({ host, port }) => host === url.hostname && (port === undefined || port === portOf(url)),
    )
}

function parseEntry(entry: string, number: number) {
  const [, host = '', port] = ENTRY.exec(entry) ?? []
  // The URL parser writes a host as it does for targets: lower case, one spelling of each address.
  const url = `http://${host}/`
  const good = host !== '' && URL.canParse(url) && (port === undefined || isPort(Number(port)))
  if (!good) throw new SyntaxError(`entry ${number} is no host or host:port`)
  return { host: new URL(url).hostname, port: port === undefined ? undefined : Number(port) }
}

/** Whether a number is a port that something can listen on. */
export function isPort(port: number) {
  return Number.isInteger(port) && port >= 1 && port <= 65_535
}

/** The port that a connection goes to: the URL names none that is its scheme's own. */
function portOf({ port, protocol }: URL) {
  if (port !== '') return Number(port)
  return protocol === 'https:' ? 443 : 80
}
