import type { EndpointKey } from '../../db/hooks/endpoints.ts'
import { badRequest, forbidden, unavailable } from '../../kernel/fault.ts'
import type { Context } from '../../kernel/http/context.ts'
import type { Access } from '../../kernel/http/endpoint.ts'
import { TOO_MANY_CALLS } from '../../services/hooks/endpoints/endpoints.ts'
import type { Hooks } from '../../services/hooks/open.ts'
import type { HooksRoutes } from './kit.ts'

/** Who calls the API: the endpoint of a token, or undefined for somebody without one. */
export type Caller = EndpointKey | undefined

/**
 * Who may read events as a program: everybody whom the guard lets in, as for pages, or the holder
 * of an endpoint's token. A token that is not known is 401, wherever it comes from: a proxy may
 * let requests with a token pass without a sign-in.
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

/** As `reader`, for sending events on, which not every token may. */
export const replayer: Access<HooksRoutes, Caller> = {
  ...reader,
  allow(caller) {
    if (caller === undefined || caller.may_replay) return
    throw forbidden('This token may not replay events; create an endpoint that may.')
  },
}

/**
 * Who may say where events go: as `reader`, but nobody with a token, which a program or an agent
 * may have. The document of the API names no token here.
 */
export const operator: Access<HooksRoutes, Caller> = {
  ...reader,
  needsToken: false,
  allow(caller) {
    if (caller === undefined) return
    throw forbidden('No token may see or change destinations; call from where people sign in.')
  },
}

/** The caller; until the answer is sent, its endpoint may have one call less at a time. */
function admitted({ endpoints }: Hooks, context: Context, waits: boolean): Caller {
  if (countOf('authorization', context) > 1) throw badRequest(AMBIGUOUS)
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

function countOf(header: string, { rawHeaders }: Context): number {
  return rawHeaders.filter((name, at) => at % 2 === 0 && name.toLowerCase() === header).length
}
