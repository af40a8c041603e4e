import Type, { type Static, type TArray, type TObject, type TSchema } from 'typebox'
import { nullable } from '../../db/sql-file.ts'
import { decodeCursor, encodeCursor } from '../../kernel/text.ts'
import { queryOf, type Context } from '../../kernel/http/context.ts'
import { parsed, withDefault } from '../../kernel/validate.ts'

const DEFAULT_LIMIT = 50
const MAX_LIMIT = 200

/** A list's rows under their name, and where its next page begins. */
type Page<Name extends string, Row> = Record<Name, Row[]> & { next_cursor: string | null }

/** The part of a list that is asked for. */
export interface PageQuery {
  readonly limit: number
  /** The key that the page begins after. */
  readonly cursor?: string
}

/**
 * The query of a list (links.md section 8); `cursor` becomes the key that the page begins after.
 * `name` names the rows: cursors of lists with other rows are refused, because their key means
 * something else.
 */
export function pageQuery(name: string) {
  const limit = Type.Integer({
    minimum: 1,
    description: `Over ${MAX_LIMIT} counts as ${MAX_LIMIT}.`,
  })
  return Type.Object({
    limit: parsed(withDefault(limit, DEFAULT_LIMIT), 'must be a positive integer', (given) =>
      typeof given === 'number' && given >= 1 ? Math.min(given, MAX_LIMIT) : undefined,
    ),
    cursor: parsed(
      Type.Optional(Type.String({ description: 'next_cursor of the page before' })),
      'is not from this list; start again from the first page',
      (given) => {
        const [after, of] = decodeCursor(String(given)) ?? []
        // The database takes no NUL, so none of our cursors has one.
        const isOurs = typeof after === 'string' && !after.includes('\0') && of === name
        return isOurs ? after : undefined
      },
    ),
  })
}

/** The body of a list: its rows under `name`. */
export function pageSchema<Name extends string, Row extends TSchema>(name: Name, row: Row) {
  const rows = { [name]: Type.Array(row) } as Record<Name, TArray<Row>>
  return Type.Object({
    ...rows,
    next_cursor: nullable(Type.String({ description: 'null on the last page' })),
  }) as unknown as TObject & { static: Page<Name, Static<Row>> }
}

/**
 * Reads a page of rows sorted by `key`. One row more than it holds tells whether there is a next
 * page.
 */
export async function readPage<
  Name extends string,
  Key extends string,
  Row extends Record<Key, string>,
>(
  name: Name,
  { limit, cursor = '' }: PageQuery,
  key: Key,
  list: (after: string, limit: number) => Promise<readonly Row[]>,
): Promise<Page<Name, Row>> {
  const rows = await list(cursor, limit + 1)
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  const next_cursor =
    rows.length > limit && last !== undefined ? encodeCursor([last[key], name]) : null
  return { [name]: shown, next_cursor } as Page<Name, Row>
}

/** The address of a list's next page: the same query, from a cursor on; null on the last page. */
export function nextAddress(context: Context, cursor: string | null): string | null {
  if (cursor === null) return null
  const query = new URLSearchParams(queryOf(context))
  query.set('cursor', cursor)
  return `${context.path}?${query.toString()}`
}
