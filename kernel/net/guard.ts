import type { IncomingHttpHeaders } from 'node:http'
import type { Context } from '../http/context.ts'
import { badRequest, forbidden, type Fault } from '../fault.ts'
import { hostName, isLoopback, isLoopbackName, type AddressSet } from './addresses.ts'
import {
  decodeHeader,
  MAX_GROUPS,
  namedGroups,
  signOfProxy,
  type ProxiedRequest,
} from './identity.ts'

/**
 * Who may call a route. `open`: anybody (receivers, probes). `guarded`: pages and streams without a
 * sign-in. Peer, proxy and Host are checked, and the origin of a change. `private`: as guarded, and
 * no page of another site may load it, because it could measure how long the work takes. `strict`:
 * as guarded, and the origin is checked for every method (tool protocol, WebSockets).
 */
export type Access = 'open' | 'guarded' | 'private' | 'strict'

/** The parts of a request that a guard looks at. */
export type GuardedRequest = ProxiedRequest & Pick<Context, 'method' | 'peer'>

export interface GuardOptions {
  /** Host names (in lower case, without port) by which the listener may be called, beside the loopback names. */
  hosts: () => ReadonlySet<string>
  trustedProxies: AddressSet
  /** Lower-case name of the header in which a trusted proxy names the user. */
  userHeader: () => string
  /** Lower-case name of the header in which it names the user's groups; undefined: none is read. */
  groupsHeader: () => string | undefined
}

export type Guard = (
  request: GuardedRequest,
  access?: Exclude<Access, 'open'>,
) => Fault | undefined

/**
 * Makes the check of routes that are not open; the first refusal in the order proxy, peer, Host,
 * origin is returned.
 */
export function createGuard(options: GuardOptions): Guard {
  return function guard(request, access) {
    const { method, headers, peer } = request
    const userHeader = options.userHeader()
    const groupsHeader = options.groupsHeader()
    if (options.trustedProxies(peer)) {
      if (decodeHeader(headers[userHeader]) === undefined) {
        return badRequest(`The header ${userHeader} is not UTF-8.`)
      }
      if (groupsHeader !== undefined && namedGroups(headers[groupsHeader]) === undefined) {
        const form = `UTF-8, and ${MAX_GROUPS} groups at most`
        return badRequest(`The header ${groupsHeader} can't be read: it takes ${form}.`)
      }
    } else {
      const sign = signOfProxy(request, userHeader, groupsHeader)
      if (sign !== undefined) return untrustedProxy(sign)
      if (!isLoopback(peer)) {
        return forbidden('This address may not use the pages; come through the trusted proxy.')
      }
    }
    const name = hostName(headers.host)
    if (!isLoopbackName(name) && !options.hosts().has(name)) {
      return forbidden(
        'The Host header names another site; use the address this service is set up for.',
      )
    }
    if (access === 'strict') {
      return isCrossSite(headers) || hasForeignOrigin(headers)
        ? forbidden('A page of another site may not use this; call it from a program.')
        : undefined
    }
    if (access === 'private' && isForeignLoad(headers)) {
      return forbidden('A page of another site may not load this; follow a link to it.')
    }
    if (method !== 'GET' && method !== 'HEAD' && isCrossSite(headers)) {
      return forbidden(
        'A page of another site may not change anything here; use the forms of this site.',
      )
    }
    return undefined
  }
}

/** True when a page of another site loads this and nobody has followed a link to it. */
export function isForeignLoad(headers: IncomingHttpHeaders) {
  const destination = headers['sec-fetch-dest']
  if (destination === undefined || !isCrossSite(headers)) return false
  return destination !== 'document' || headers['sec-purpose'] !== undefined
}

/**
 * Sec-Fetch-Site where the browser sends it, else Origin against Host; a program sends neither.
 */
function isCrossSite(headers: IncomingHttpHeaders) {
  const site = headers['sec-fetch-site']
  if (typeof site === 'string') return site !== 'same-origin' && site !== 'none'
  return hasForeignOrigin(headers)
}

function hasForeignOrigin(headers: IncomingHttpHeaders) {
  const origin = headers.origin
  if (origin === undefined) return false
  return URL.parse(origin)?.host !== (headers.host ?? '').toLowerCase()
}

/** Without this, everybody behind the proxy would count as a user of this machine. */
function untrustedProxy(sign: string) {
  return forbidden(
    `A proxy that is not trusted passed this request on (${sign}). Have the proxy ask ` +
      'for a sign-in, then set GATEHOUSE_TRUSTED_PROXIES to its address.',
  )
}
