import type { EndpointKey } from '../../db/hooks/agents/endpoints.ts'
import { badRequest, forbidden, unavailable } from '../../kernel/fault.ts'
import type { Context } from '../../kernel/http/context.ts'
import type { Access } from '../../kernel/http/declaration.ts'
import { TOO_MANY_CALLS } from '../../services/hooks/agents/endpoints/endpoints.ts'
import type { Hooks } from '../../services/hooks/open.ts'
import type { HooksRoutes } from './kit.ts'

/** Who calls the API: the endpoint of a token, or undefined for somebody without one. */
export type Caller = EndpointKey | undefined

/**
 * The holder of the token of the endpoint in the path. The token is checked before the body is
 * read: a stranger does not learn which endpoints exist.
 */
export const endpointHolder: Access<HooksRoutes, EndpointKey> = {
  guard: 'strict',
  needsToken: true,
  identify({ hooks }, context) {
    const { params, headers, receivedAt } = context
    const name = params['endpoint'] ?? ''
    const endpoint = hooks.endpoints.authorize(name, headers.authorization, receivedAt)
    context.actor = { kind: 'token', name }
    return endpoint
  },
}

/**
 * Readers of events by the API: everybody who passes the guard, as on pages, or the holder of an
 * endpoint's token. An unknown token is always 401: a proxy may let requests with a token pass
 * without a sign-in.
 */
export const reader: Access<HooksRoutes, Caller> = {
  guard: 'private',
  needsToken: 'optional',
  identify: ({ hooks }, context) => admitted(hooks, context, false),
}

/** The same for a stream, which lasts until the token is revoked. */
export const follower: Access<HooksRoutes, Caller> = {
  ...reader,
  identify: ({ hooks }, context) => admitted(hooks, context, true),
}

/** As `reader`, for replays, which not every token may make. */
export const replayer: Access<HooksRoutes, Caller> = {
  ...reader,
  allow(caller) {
    if (caller === undefined || caller.may_replay) return
    throw forbidden('This token may not replay events; create an endpoint that may.')
  },
}

/**
 * Who may say where events go, and what all people find in a menu: as `reader`, but nobody with a
 * token, which an agent may have. The API's document names no token here.
 */
export const operator: Access<HooksRoutes, Caller> = {
  ...reader,
  needsToken: false,
  allow(caller) {
    if (caller === undefined) return
    throw forbidden('No token may do this; call from where people sign in.')
  },
}

/** The caller. Its endpoint has a bound of running calls; this one counts until it is answered. */
function admitted({ endpoints }: Hooks, context: Context, waits: boolean): Caller {
  const isSent = (name: string, at: number) => at % 2 === 0 && /^authorization$/i.test(name)
  if (context.rawHeaders.filter(isSent).length > 1) throw badRequest(AMBIGUOUS)
  const caller = endpoints.callerOf(context.headers.authorization, context.receivedAt)
  if (caller === undefined) return undefined
  context.actor = { kind: 'token', name: caller.name }
  const leave = endpoints.admit(caller, waits)
  if (leave === undefined) throw unavailable(TOO_MANY_CALLS)
  const gone = context.gone()
  if (gone.aborted) leave()
  else gone.addEventListener('abort', leave)
  return caller
}

/** The first one counts here; a proxy may have let the request pass because of another one. */
const AMBIGUOUS = 'The request has more than one Authorization header; send one.'
