import Type from 'typebox'
import type { Bearer } from '../../../db/links/tokens.ts'
import { bearerToken } from '../../../kernel/tokens.ts'
import type { Context } from '../../../kernel/http/context.ts'
import type { FaultValue } from '../../../kernel/fault.ts'
import type { Operation } from '../../../kernel/openapi.ts'
import { isUuid } from '../../../kernel/text.ts'
import { jsonReply, type Reply } from '../../../kernel/http/reply.ts'
import { isRefusal, type Refusal } from '../../../services/links/refusal.ts'
import { noteUse } from '../../../services/links/tokens.ts'
import { readJsonObject, type JsonObject } from '../../json-body.ts'
import { faultReply, refuse, UNAUTHORIZED } from '../faults.ts'
import type { LinksRoutes } from '../options.ts'

/** A request whose sender is known. */
export interface ApiCall {
  readonly context: Context
  readonly caller: Bearer
  /** A parameter of the path; ids among them are UUIDs, in lower case as they are shown. */
  param(name: string): string
}

/** What an endpoint is: an operation whose handler is called by whoever may. */
export interface Endpoint extends Omit<Operation, 'handle' | 'access' | 'needsToken' | 'refusals'> {
  /** Only for admins. */
  readonly admin?: true
  /** Also for tokens of scope `create`. */
  readonly creates?: true
  readonly refusals?: readonly number[]
  readonly answer: (call: ApiCall) => Promise<Reply | Refusal | FaultValue>
}

/** Why whoever is no admin is refused. */
export const FOR_ADMINS: Refusal = { refused: 'FORBIDDEN', message: 'only admins may do this' }

const BODY_LIMIT = 64 * 1024

export const UuidParam = Type.String({ format: 'uuid' })

/**
 * An endpoint of the API. The order of its refusals: 401 without a valid token, 403 beyond the token's
 * scope or for admins only, 400 for an id that is no UUID, then its own.
 */
export function endpoint(
  { links }: LinksRoutes,
  { admin, creates, answer, refusals = [], ...description }: Endpoint,
): Operation {
  const ids = Object.entries(description.params ?? {})
    .filter(([, schema]) => schema === UuidParam)
    .map(([name]) => name)
  return {
    ...description,
    access: 'open',
    needsToken: true,
    refusals: [401, 403, ...(ids.length > 0 ? [400, 404] : []), ...refusals, 503],
    async handle(context) {
      const caller = await authenticate(links, context)
      if (caller === undefined) return faultReply(UNAUTHORIZED, context)
      const beyond = refuseScope(caller, context.method, creates === true, admin === true)
      if (beyond !== undefined) return refuse(beyond, context)
      const malformed = ids.find((name) => !isUuid(context.params[name] ?? ''))
      if (malformed !== undefined) {
        return faultReply(badRequest(`${malformed} in the path must be a UUID`), context)
      }
      function param(name: string): string {
        const value = context.params[name] ?? ''
        return ids.includes(name) ? value.toLowerCase() : value
      }
      const result = await answer({ context, caller, param })
      if (isRefusal(result)) return refuse(result, context)
      return 'body' in result ? result : faultReply(result, context)
    },
  }
}

/** Whose token a request bears; its use is noted. */
export async function authenticate(
  { db, log, bearers }: Pick<LinksRoutes['links'], 'db' | 'log' | 'bearers'>,
  { headers, receivedAt }: Context,
): Promise<Bearer | undefined> {
  const token = bearerToken(headers)
  const bearer = token === undefined ? undefined : await bearers.find(token, receivedAt)
  if (bearer !== undefined) noteUse(db, log, bearer, receivedAt)
  return bearer
}

/** The request's JSON object, or the fault that says why there is none. */
export async function bodyOf({ context }: ApiCall): Promise<{ value: JsonObject } | FaultValue> {
  return readJsonObject(context, BODY_LIMIT)
}

/** A string member of a body. */
export function textOf(body: JsonObject, name: string): string | FaultValue {
  const value = body[name]
  if (typeof value === 'string') return value
  return badRequest(`${name} is required and must be a string`)
}

/** 204: done, nothing to say. */
export function done(): Reply {
  return { status: 204, headers: { 'cache-control': 'no-store' }, body: null }
}

/** A result as JSON, or its refusal as it is. */
export function reply(result: object, status = 200): Reply | Refusal {
  return isRefusal(result) ? result : jsonReply(result, status)
}

export function badRequest(detail: string): FaultValue {
  return { status: 400, code: 'BAD_REQUEST', detail }
}

function refuseScope(
  { scope, role }: Bearer,
  method: string,
  creates: boolean,
  admin: boolean,
): Refusal | undefined {
  const reads = method === 'GET' || method === 'HEAD'
  const within = scope === 'full' || (scope === 'read' && reads) || (scope === 'create' && creates)
  if (!within) {
    return {
      refused: 'FORBIDDEN',
      message: `this token has scope ${scope}, which does not reach here`,
    }
  }
  if (!admin || role === 'admin') return undefined
  return FOR_ADMINS
}
