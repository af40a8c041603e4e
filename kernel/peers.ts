import { BlockList, isIP, type Server } from 'node:net'

/** Which addresses a set of CIDR blocks holds. */
export type AddressSet = (address: string) => boolean

const LOOPBACK = parseBlocks(['127.0.0.0/8', '::1/128'])

/** Parses `10.0.0.0/8`, `fd00::/8` or single addresses; throws a RangeError that counts to the bad one. */
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
function unmapAddress(address: string): string {
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address
}

/** The address of who is connected; undefined where the peer is unknown. */
export type PeerOf = (socket: object) => string | undefined

/**
 * Reads the peer of each connection once, when the server accepts it: TCP names no address any more for a
 * client that has reset its connection, though its bytes can still be read. A connection whose peer is
 * unknown is ended. A unix socket has no addresses and counts as loopback: its permissions are its guard.
 */
export function watchPeers(server: Server): PeerOf {
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
 * `X-Forwarded-For` that is not itself a trusted proxy. An entry that is no address ends the search.
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

/** `203.0.113.7` → `203.0.113.0/24`, IPv6 → its /48: enough to recognise a sender's network. */
export function redactAddress(address: string): string {
  if (isIP(address) === 4) return address.replace(/\.\d+$/, '.0/24')
  if (isIP(address) !== 6) return 'unknown'
  const [head = ''] = address.split('::')
  const groups = head
    .split(':')
    .slice(0, 3)
    .filter((group) => group !== '')
  return `${groups.join(':')}::/48`
}

function stripPort(entry: string): string {
  const bracketed = /^\[([^\]]+)\](?::\d+)?$/.exec(entry)
  if (bracketed !== null) return bracketed[1] ?? ''
  return /^\d+\.\d+\.\d+\.\d+:\d+$/.test(entry) ? entry.replace(/:\d+$/, '') : entry
}
