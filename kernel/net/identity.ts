import type { Identity } from '../actor.ts'
import type { Context } from '../http/context.ts'
import { hostName, isLoopback, isLoopbackName, type AddressSet } from './addresses.ts'
import { isUtf8 } from 'node:buffer'

export interface IdentityOptions {
  /** Proxies that are believed; undefined if no proxy is configured. */
  trustedProxies: () => AddressSet | undefined
  /** Lower-case name of the header in which they name the user. */
  userHeader: () => string
  /** Lower-case name of the header in which they name the user's groups; undefined: none is read. */
  groupsHeader: () => string | undefined
}

/** The parts of a request that tell who sends it. */
export type IdentifiedRequest = ProxiedRequest & Pick<Context, 'peer'>

/**
 * Creates the function that finds out who sends a request. A header of an untrusted peer is never
 * believed.
 */
export function identityReader(
  options: IdentityOptions,
): (request: IdentifiedRequest) => Identity {
  const { userHeader, groupsHeader } = options
  return (request) => {
    const { headers, peer } = request
    const trustedProxies = options.trustedProxies()
    if (trustedProxies !== undefined) {
      // On open routes what can't be read names nobody; the guard refuses it on all others.
      const email = trustedProxies(peer) ? decodeHeader(headers[userHeader()]) : undefined
      if (email === undefined || email === '') return { kind: 'anonymous' }
      const header = groupsHeader()
      const groups = header === undefined ? [] : (namedGroups(headers[header]) ?? [])
      return { kind: 'user', email, groups }
    }
    const isLocal = isLoopback(peer) && isLoopbackName(hostName(headers.host))
    const isDirect = signOfProxy(request, userHeader(), groupsHeader()) === undefined
    return { kind: isLocal && isDirect ? 'operator' : 'anonymous' }
  }
}

/** The parts of a request that show a proxy. */
export type ProxiedRequest = Pick<Context, 'headers' | 'httpVersion'>

/** True for a header that proxies set for the server behind them; the name is in lower case. */
export function isProxyHeader(name: string): boolean {
  return /^(forwarded|via|x-forwarded-.*|x-real-ip|true-client-ip|cf-.*|remote-.*)$/.test(name)
}

/**
 * The sign that a proxy passed a request on, if it has one. Browsers and today's programs send no
 * such sign. nginx and other proxies speak HTTP/1.0 to a server by default.
 */
export function signOfProxy(
  { headers, httpVersion }: ProxiedRequest,
  ...identityHeaders: readonly (string | undefined)[]
): string | undefined {
  if (httpVersion === '1.0') return 'HTTP/1.0'
  return Object.keys(headers).find((name) => identityHeaders.includes(name) || isProxyHeader(name))
}

/** What a proxy says in a header, empty for nothing; undefined for bytes that are not UTF-8. */
export function decodeHeader(value: string | readonly string[] | undefined): string | undefined {
  if (typeof value !== 'string') return ''
  // Node reads headers as Latin-1, which keeps each byte.
  const bytes = Buffer.from(value, 'latin1')
  return isUtf8(bytes) ? bytes.toString('utf8').trim() : undefined
}

/** The groups named by a proxy; undefined where they can't be read. */
export function namedGroups(
  value: string | readonly string[] | undefined,
): readonly string[] | undefined {
  const text = decodeHeader(value)
  return text === undefined ? undefined : readGroups(text)
}

/** Each is looked up with each request of a page. */
export const MAX_GROUPS = 500

const MAX_NAME_LENGTH = 100

/** What the name of a group may be, for messages. */
export const GROUP_NAME_FORM =
  `a name of 1 to ${MAX_NAME_LENGTH} characters, without control characters, ` +
  'commas, semicolons and vertical bars'

/**
 * The name of a group as it is compared: case counts, as `Ops` and `ops` may be two groups.
 * Undefined for other text.
 */
export function readGroupName(text: string): string | undefined {
  const name = text.trim()
  if (name === '' || name.length > MAX_NAME_LENGTH) return undefined
  return /[\p{C},;|]/u.test(name) ? undefined : name
}

/**
 * The groups in a proxy's header, each once. Authelia and oauth2-proxy separate them by commas,
 * authentik by vertical bars. A name that no group may have is in no link, so it is left out.
 * Undefined for too many: without some of them, a person would be refused without a reason.
 */
function readGroups(text: string): readonly string[] | undefined {
  const names = text.split(/[,|]/).map(readGroupName)
  const groups = [...new Set(names.filter((name) => name !== undefined))]
  return groups.length > MAX_GROUPS ? undefined : groups
}
