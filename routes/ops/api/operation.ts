import Type from 'typebox'
import { type Context, queryOf } from '../../../kernel/http/context.ts'
import { badRequest, type FaultValue } from '../../../kernel/fault.ts'
import type { Operation } from '../../../kernel/openapi.ts'
import type { Reply } from '../../../kernel/http/reply.ts'
import { readJsonObject, type JsonObject } from '../../json-body.ts'
import { opsFault } from '../faults.ts'

/** An operation whose handler may answer a fault. */
export interface OpsOperation extends Omit<Operation, 'handle' | 'access' | 'needsToken'> {
  readonly answer: (context: Context) => Promise<Reply | FaultValue>
}

const BODY_LIMIT = 1024 * 1024
const MOST_ROWS = 1_000

export const IdParam = Type.Integer({ description: 'Id' })

/** An operation of the API: it bears no authentication (ops.md section 5), its guard is the listener's. */
export function opsOperation({ answer, ...description }: OpsOperation): Operation {
  return {
    ...description,
    // What each of them may answer.
    refusals: [...description.refusals, 403, 500, 503],
    access: 'guarded',
    needsToken: false,
    async handle(context) {
      const result = await answer(context)
      return 'body' in result ? result : opsFault(result, context)
    },
  }
}

/** The query of a list. */
export function listQuery(usual: number) {
  return {
    limit: Type.Optional(
      Type.Integer({
        minimum: 0,
        default: usual,
        description: `Over ${MOST_ROWS} counts as that.`,
      }),
    ),
    offset: Type.Optional(Type.Integer({ minimum: 0, default: 0 })),
  }
}

/** Where a list begins, and how many rows it has at most. */
export interface ListRequest {
  readonly limit: number
  readonly offset: number
  readonly query: URLSearchParams
}

/** Reads `limit` and `offset`; a bad one gives the fault that says so. */
export function readList(context: Context, usual: number): ListRequest | FaultValue {
  const query = queryOf(context)
  const limit = readCount(query, 'limit', usual)
  if (limit === undefined) return badRequest('limit must be a non-negative integer')
  const offset = readCount(query, 'offset', 0)
  if (offset === undefined) return badRequest('offset must be a non-negative integer')
  return { limit: Math.min(limit, MOST_ROWS), offset, query }
}

/** A filter of a list: null for all. The database takes no NUL, so nothing has such a name. */
export function filterOf({ query }: ListRequest, name: string): string | null {
  const value = query.get(name)
  return value === null || value === '' ? null : value.replaceAll('\0', '\u{FFFD}')
}

/** The id in the path: undefined for text that is no integer, 0 for one that no row can have. */
export function idOf({ params }: Context): number | undefined {
  const text = params['id'] ?? ''
  if (!/^-?\d+$/.test(text)) return undefined
  const id = Number(text)
  return Number.isSafeInteger(id) && id > 0 ? id : 0
}

/** The JSON object of the body, or the fault that says why there is none. */
export function bodyOf(context: Context): Promise<{ readonly value: JsonObject } | FaultValue> {
  return readJsonObject(context, BODY_LIMIT)
}

function readCount(query: URLSearchParams, name: string, usual: number): number | undefined {
  const text = query.get(name)
  if (text === null) return usual
  if (!/^\d+$/.test(text)) return undefined
  return Math.min(Number(text), Number.MAX_SAFE_INTEGER)
}
