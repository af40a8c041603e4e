import { lookup } from 'node:dns'
import { request as httpRequest, type RequestOptions } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import { messageOf } from './log.ts'
import { parseBlocks } from './peers.ts'

/** A request that the program makes for somebody else. */
export interface OutboundRequest {
  /** http or https. */
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
  readonly timeoutMs: number
  /** True for a target that an operator named: it may be on a private network. */
  readonly trusted: boolean
}

/**
 * What became of it. `refused`: the target's address is not public, and nothing was connected to.
 * `failed`: no answer; `reason` is one line for people.
 */
export type OutboundResult =
  | { readonly kind: 'answered'; readonly status: number; readonly ms: number }
  | { readonly kind: 'refused' | 'failed'; readonly reason: string; readonly ms: number }

/** Addresses that are not the public internet: this host, private, link-local (metadata), reserved. */
const isSpecialAddress = parseBlocks([
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
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
  return isIP(address) === 4 && !isSpecialAddress(address)
}

class RefusedAddress extends Error {}

/**
 * Posts a body and reads the answer's status. The address is checked where the socket connects to
 * it, so a name that resolves to something else the second time gains nothing. Redirects are not
 * followed: their status is the answer.
 */
export function post({
  url,
  headers,
  body,
  timeoutMs,
  trusted,
}: OutboundRequest): Promise<OutboundResult> {
  const started = performance.now()
  const elapsed = (): number => Math.round(performance.now() - started)
  const host = url.hostname.replace(/^\[|\]$/g, '')
  if (!trusted && isIP(host) !== 0 && !isPublicAddress(host)) {
    return Promise.resolve({ kind: 'refused', reason: NOT_PUBLIC, ms: elapsed() })
  }
  return new Promise((resolve) => {
    const options: RequestOptions = {
      method: 'POST',
      headers: { ...headers, 'content-length': body.length },
      agent: false,
      signal: AbortSignal.timeout(timeoutMs),
      ...(trusted ? {} : { lookup: publicLookup }),
    }
    const send = url.protocol === 'https:' ? httpsRequest : httpRequest
    const outgoing = send(url, options, (response) => {
      // Only the status counts; an endless body must not hold the socket.
      resolve({ kind: 'answered', status: response.statusCode ?? 0, ms: elapsed() })
      response.destroy()
    })
    outgoing.on('error', (error) => {
      if (error instanceof RefusedAddress)
        return resolve({ kind: 'refused', reason: NOT_PUBLIC, ms: elapsed() })
      const late = error.name === 'AbortError' || error.name === 'TimeoutError'
      const reason = late ? `no answer within ${timeoutMs / 1000} s` : messageOf(error)
      resolve({ kind: 'failed', reason, ms: elapsed() })
    })
    outgoing.end(body)
  })
}

const NOT_PUBLIC =
  'the target is not on the public internet; an operator can allow it in HOOKS_REPLAY_TARGETS'

/** Resolves a name like the system does, and refuses it when any of its addresses is not public. */
const publicLookup: LookupFunction = (hostname, options, callback) => {
  lookup(hostname, { ...options, all: true }, (error, addresses) => {
    if (error !== null) return callback(error, [])
    if (addresses.length === 0 || addresses.some(({ address }) => !isPublicAddress(address))) {
      return callback(new RefusedAddress(NOT_PUBLIC), [])
    }
    const [first] = addresses
    if (options.all === true || first === undefined) callback(null, addresses)
    else callback(null, first.address, first.family)
  })
}
