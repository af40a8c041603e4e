import Type, { type Static, type TObject, type TSchema } from 'typebox'
import type { ServiceLink } from '../../html/layout.ts'
import { opsErrorPage, opsFrame, type Listed } from '../../html/ops/layout.ts'
import type { Context } from '../../kernel/http/context.ts'
import {
  anyone,
  endpointsOf,
  type Call,
  type Endpoint,
  visitor,
} from '../../kernel/http/endpoint.ts'
import { badRequest, Fault } from '../../kernel/fault.ts'
import type { Actor } from '../../kernel/actor.ts'
import { field, parsed, withDefault } from '../../kernel/validate.ts'
import { htmlReply, jsonReply, type Reply } from '../../kernel/http/reply.ts'
import { audienceOf } from '../../kernel/http/view.ts'
import type { Ops } from '../../services/ops/open.ts'

/** What the endpoints of the ops listener work with. */
export interface OpsApp {
  ops: Ops
  version: string
  /** The services that run, for the header of the pages. */
  services: () => readonly ServiceLink[]
  /** Public address of the service, without a slash at its end. */
  baseUrl: () => string
  /** The key of the alert webhook and the chat API, as configured now. */
  chatKey: () => string | undefined
}

/** Who bears the key of the alert webhook and the chat API. */
export const KEY_HOLDER: Actor = { kind: 'token', name: 'OPS_CHAT_API_KEY' }

/** The contract's text of a 500. */
const INTERNAL = 'internal server error'

/**
 * Errors of the ops service: `{error}` (ops.md section 7); browsers get a page outside the API.
 */
export function opsFault(
  { services }: Pick<OpsApp, 'services'>,
  fault: Fault,
  request: Pick<Context, 'path' | 'headers'>,
): Reply {
  const { status, code, message, headers } = fault
  if (request.path.startsWith('/v1/')) {
    return chatProblem(fault, code.toLowerCase())
  }
  if (!request.path.startsWith('/api/') && audienceOf(request) === 'browser') {
    return htmlReply(opsFrame(opsErrorPage(fault), services()), status, headers)
  }
  return jsonReply({ error: code === 'INTERNAL_ERROR' ? INTERNAL : message }, status, headers)
}

/** An error of the chat API in OpenAI's shape; `code` distinguishes errors of one status. */
export function chatProblem({ status, message, headers }: Fault, code: string | null): Reply {
  const type = status >= 500 ? 'server_error' : 'invalid_request_error'
  return jsonReply({ error: { message, type, param: null, code } }, status, headers)
}

/** The session that was started, or 409: only one runs at a time. */
export function started<Session>(session: Session | undefined): Session {
  if (session !== undefined) return session
  throw new Fault(409, 'CONFLICT', 'a session is running; try again when it has ended')
}

/** Ops has no sign-in: pages and API are for `anyone` (ops.md section 5). */
export const { api, page, form, raw, action } = endpointsOf<OpsApp, undefined>({
  access: anyone,
  pageAccess: visitor,
  bodyLimit: 1024 * 1024,
  alwaysRefuses: [403, 500, 503],
  faultReply: opsFault,
  frame: ({ services }, page) => opsFrame(page, services()),
})

/** For forms with a long text: 100,000 characters take up to 900,000 bytes in a form. */
export const LONG_FORM_LIMIT = 1024 * 1024

/** A list of the API: an object whose only member, such as `events`, has the rows. */
export function listApi<Query extends TObject, Row extends TSchema>(
  noun: string,
  declared: {
    summary: string
    row: Row
    query?: Query
    list: (
      call: Call<OpsApp, undefined, unknown, Static<Query>>,
    ) => Promise<readonly Static<Row>[]>
  },
): Endpoint<OpsApp> {
  const { summary, row, list, ...query } = declared
  const name = noun.toLowerCase()
  const schema: TObject = Type.Object({ [name]: Type.Array(row) })
  return api({
    method: 'GET',
    path: `/api/v1/${name}`,
    id: `list${noun}`,
    tag: noun,
    summary,
    ...query,
    returns: { description: noun, schema },
    answer: async (call) => ({ [name]: await list(call) }),
  })
}

const MAX_ROWS = 1_000
const COUNT = 'must be a non-negative integer'

/** The id of a row, in the path. */
export function idOf(noun: string) {
  return parsed(Type.Integer({ description: 'Id' }), '', (given) => {
    if (typeof given === 'number') return given
    throw badRequest(`the ${noun} id must be an integer`, 'id')
  })
}

/** The part of a list that is asked for. */
export type Paging = Readonly<Record<'limit' | 'offset', number>>

/** The query of a list. A limit over the maximum counts as the maximum. */
export function paging(defaultLimit: number) {
  const description = `Over ${MAX_ROWS} counts as that.`
  const limit = withDefault(Type.Integer({ minimum: 0, description }), defaultLimit)
  return {
    limit: parsed(limit, COUNT, (given) =>
      typeof given === 'number' && given >= 0 ? Math.min(given, MAX_ROWS) : undefined,
    ),
    offset: field(withDefault(Type.Integer({ minimum: 0 }), 0), COUNT),
  }
}

/** A filter of a list; null for all. PostgreSQL stores no NUL, so no value has one. */
export const Filter = parsed(
  withDefault(Type.Unsafe<string | null>({ type: 'string' }), null),
  'must be a text',
  (text) => (text === '' ? null : String(text).replaceAll('\0', '\u{FFFD}')),
)

/** A page of a list, and the address of the next page, if there is one. */
export async function readPage<Row, Query extends Paging>(
  path: string,
  query: Query,
  list: (query: Query) => Promise<readonly Row[]>,
): Promise<Listed<Row>> {
  const { limit, offset } = query
  // One row more tells whether there is a next page.
  const listed = await list({ ...query, limit: limit + 1 })
  const rows = listed.slice(0, limit)
  if (listed.length <= limit || limit === 0) return { rows, older: undefined }
  const next = Object.entries({ ...query, offset: offset + limit })
    .filter(([, value]) => value !== null)
    .map(([name, value]) => [name, String(value)])
  return { rows, older: `${path}?${new URLSearchParams(next)}` }
}
