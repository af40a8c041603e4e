import { endpointQueries as q, type EndpointKey } from '../../../../db/hooks/agents/endpoints.ts'
import { Fault, forbidden } from '../../../../kernel/fault.ts'
import { bearerToken, hashToken } from '../../../../kernel/tokens.ts'
import { messageOf } from '../../../../kernel/log.ts'
import type { HooksParts, Registry } from '../../registry.ts'
import type { AdmitCall } from './call-limit.ts'

const RECORD_MS = 60_000

/**
 * Finds the endpoint whose token a request bears, and records its use. Tokens are found by hash:
 * the time of a look-up tells nothing about a token.
 */
export function openEndpoints(
  { db, log }: Pick<HooksParts, 'db' | 'log'>,
  registry: Registry,
  admit: AdmitCall,
) {
  const recorded = new Map<string, number>()
  /** Ends what still runs for a token when the token is revoked; by the token's hash. */
  const valid = new Map<string, AbortController>()

  registry.onChange(() => {
    for (const [hash, controller] of valid) {
      if (registry.endpointOf(Buffer.from(hash, 'hex')) !== undefined) continue
      valid.delete(hash)
      controller.abort()
    }
  })

  /** At most once a minute; requests don't wait for it. */
  function recordUse({ name }: EndpointKey, now: Date): void {
    if (now.getTime() - (recorded.get(name) ?? 0) < RECORD_MS) return
    recorded.set(name, now.getTime())
    q.touchEndpoint(db, { name, now }).catch((error: unknown) => {
      log.warn('use of an endpoint not noted', { error: messageOf(error) })
    })
  }

  /**
   * The endpoint of the bearer token; undefined for a request without a bearer token. Throws 401
   * for an unknown token, and for a header that can't be read.
   */
  function callerOf(authorization: string | undefined, at: Date): EndpointKey | undefined {
    if (!/^bearer\b/i.test(authorization ?? '')) return undefined
    const token = bearerToken({ authorization })
    const endpoint = token === undefined ? undefined : registry.endpointOf(hashToken(token))
    if (endpoint === undefined) throw unauthorized(authorization)
    recordUse(endpoint, at)
    return endpoint
  }

  return {
    callerOf,
    /**
     * The endpoint of this name. Throws 401 without a known token, and 403 with the token of
     * another endpoint, whether this one exists or not.
     */
    authorize(name: string, authorization: string | undefined, at: Date): EndpointKey {
      const endpoint = callerOf(authorization, at)
      if (endpoint === undefined) throw unauthorized(authorization)
      if (endpoint.name === name) return endpoint
      throw forbidden('This token does not belong to this endpoint.')
    },
    admit,
    /** Aborted when the token is revoked, which may have been while its request was read. */
    signalOf({ token_hash }: EndpointKey): AbortSignal {
      if (registry.endpointOf(token_hash) === undefined) return AbortSignal.abort()
      const hash = token_hash.toString('hex')
      return valid.getOrInsertComputed(hash, () => new AbortController()).signal
    },
  }
}

function unauthorized(authorization: string | undefined): Fault {
  const invalid = authorization === undefined ? '' : ', error="invalid_token"'
  const headers = { 'www-authenticate': `Bearer realm="gatehouse"${invalid}` }
  const message = 'The token is missing or wrong; send it as Authorization: Bearer.'
  return new Fault(401, 'UNAUTHORIZED', message, { headers })
}

export const TOO_MANY_CALLS =
  'This endpoint has as many calls running as it may; wait for one to end.'
