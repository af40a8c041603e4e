import Type from 'typebox'
import type { TArray, TObject, TSchema } from 'typebox'
import { nullable } from '../../../db/rows.ts'
import { queryOf, type Context } from '../../../kernel/http/context.ts'
import { decodeCursor, encodeCursor } from '../../../kernel/text.ts'
import type { FaultValue } from '../../../kernel/fault.ts'
import { badRequest } from './endpoint.ts'

const USUAL = 50
const MOST = 200

/** The query of every list (links.md section 8). */
export const PageQuery = Type.Object({
  limit: Type.Optional(
    Type.Integer({ minimum: 1, default: USUAL, description: `Over ${MOST} counts as ${MOST}.` }),
  ),
  cursor: Type.Optional(Type.String({ description: 'next_cursor of the page before' })),
})

/** Where a page begins, after which key, and how many rows it holds. */
export interface PageRequest {
  readonly after: string
  readonly limit: number
}

/** The body of a list: its rows under `name`. */
export function pageOf<Name extends string, Row extends TSchema>(name: Name, row: Row): TObject {
  const rows: Record<string, TArray<Row>> = { [name]: Type.Array(row) }
  return Type.Object({
    ...rows,
    next_cursor: nullable(Type.String({ description: 'null on the last page' })),
  })
}

/**
 * Reads `limit` and `cursor`; a bad one gives the fault that says so. With the `name` of its rows a list
 * refuses cursors of lists with other rows: their position would mean something else in it.
 */
export function readPage(context: Context, name?: string): PageRequest | FaultValue {
  const query = queryOf(context)
  const limit = query.get('limit') ?? String(USUAL)
  if (!/^0*[1-9]\d*$/.test(limit)) return badRequest('limit must be a positive integer')
  const cursor = query.get('cursor')
  if (cursor === null) return { after: '', limit: Math.min(Number(limit), MOST) }
  const [after, of] = decodeCursor(cursor) ?? []
  // The database takes no NUL, so none of our cursors has one.
  if (typeof after !== 'string' || after.includes('\0') || of !== name) {
    return badRequest('cursor is none of this list; start again from the first page')
  }
  return { after, limit: Math.min(Number(limit), MOST) }
}

/** A page's body, from one row more than it holds, which tells that there is a next page. */
export function page<Row>(
  name: string,
  rows: readonly Row[],
  limit: number,
  keyOf: (row: Row) => string,
): object {
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  const more = rows.length > limit && last !== undefined
  return { [name]: shown, next_cursor: more ? encodeCursor([keyOf(last), name]) : null }
}
