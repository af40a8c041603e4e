import type { Context } from '../http/context.ts'
import { hostName, isLoopbackName } from './guard.ts'
import { isLoopback, type AddressSet } from './addresses.ts'
import { namedUser, signOfProxy } from './proxy-headers.ts'

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
  return (context) => {
    const { headers, peer } = context
    if (trustedProxies !== undefined) {
      // On open routes a name that is not UTF-8 names nobody; the guard refuses it on all others.
      const email = trustedProxies(peer) ? namedUser(headers[userHeader()]) : undefined
      return email === undefined || email === '' ? { kind: 'anonymous' } : { kind: 'user', email }
    }
    const isLocal = isLoopback(peer) && isLoopbackName(hostName(headers.host))
    const isDirect = signOfProxy(context, userHeader()) === undefined
    return { kind: isLocal && isDirect ? 'operator' : 'anonymous' }
  }
}
