import type { Context } from './context.ts'
import { hostName, isLoopbackName } from './guard.ts'
import { isLoopback, isProxyHeader, type AddressSet } from './peers.ts'

/** Who sits at a browser, as far as the connection tells (decisions.md section 4, UI sign-in). */
export type Identity =
  /** The trusted proxy has signed somebody in. */
  | { readonly kind: 'user'; readonly email: string }
  /** Somebody on this machine, without a proxy in between. */
  | { readonly kind: 'operator' }
  | { readonly kind: 'anonymous' }

export interface IdentityOptions {
  /** Proxies whose word counts; undefined when there are none. */
  readonly trustedProxies: AddressSet | undefined
  /** Lower-case name of the header in which they name the user. */
  readonly userHeader: () => string
}

/** Makes the reading of who sends a request. A header of an untrusted peer is never believed. */
export function identityReader(options: IdentityOptions): (context: Context) => Identity {
  const { trustedProxies, userHeader } = options
  return ({ headers, peer }) => {
    if (trustedProxies !== undefined) {
      const named = trustedProxies(peer) ? headers[userHeader()] : undefined
      const email = typeof named === 'string' ? named.trim() : ''
      return email === '' ? { kind: 'anonymous' } : { kind: 'user', email }
    }
    const forwarded = Object.keys(headers).some(isProxyHeader)
    const local = isLoopback(peer) && isLoopbackName(hostName(headers.host)) && !forwarded
    return { kind: local ? 'operator' : 'anonymous' }
  }
}
