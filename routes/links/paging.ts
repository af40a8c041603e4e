import Type from 'typebox'
import type { TArray, TObject, TSchema } from 'typebox'
import { nullable } from '../../db/rows.ts'
import { decodeCursor, encodeCursor } from '../../kernel/cursor.ts'
import { parsed, withDefault } from '../../kernel/validate.ts'

const DEFAULT_LIMIT = 50
const MAX_LIMIT = 200

/**
 * The query of a list (links.md section 8). `rows` is the name of what it lists: a cursor of another
 * list is refused, because its position means something else there. `cursor` becomes the key of the
 * last row of the page before.
 */
export function pageQuery(rows: string) {
  return Type.Object({
    limit: parsed(
      withDefault(
        Type.Integer({ minimum: 1, description: `Over ${MAX_LIMIT} counts as ${MAX_LIMIT}.` }),
        DEFAULT_LIMIT,
      ),
      'must be a positive integer',
      (given) => (typeof given === 'number' && given >= 1 ? Math.min(given, MAX_LIMIT) : undefined),
    ),
    cursor: parsed(
      Type.Optional(Type.String({ description: 'next_cursor of the page before' })),
      'is not a cursor of this list; start again from the first page',
      (given) => {
        const [key, of] = decodeCursor(String(given)) ?? []
        // The database takes no NUL, so no cursor of ours has one.
        return typeof key === 'string' && !key.includes('\0') && of === rows ? key : undefined
      },
    ),
  })
}

/** The body of a list: its rows by their name. */
export function pageOf<Name extends string, Row extends TSchema>(name: Name, row: Row): TObject {
  const rows: Record<string, TArray<Row>> = { [name]: Type.Array(row) }
  return Type.Object({
    ...rows,
    next_cursor: nullable(Type.String({ description: 'null on the last page' })),
  })
}

/** A page of a list, and the cursor of the next one; null on the last page. */
export interface Page<Row> {
  readonly shown: readonly Row[]
  readonly cursor: string | null
}

/** Makes a page from one row more than it holds, which tells that there is a next page. */
export function toPage<Row>(
  name: string,
  rows: readonly Row[],
  limit: number,
  keyOf: (row: Row) => string,
): Page<Row> {
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  const more = rows.length > limit && last !== undefined
  return { shown, cursor: more ? encodeCursor([keyOf(last), name]) : null }
}

/** The address of the next page: the same query with another cursor. */
export function nextAddress(path: string, search: string, cursor: string | null): string | null {
  if (cursor === null) return null
  const query = new URLSearchParams(search)
  query.set('cursor', cursor)
  return `${path}?${query.toString()}`
}
