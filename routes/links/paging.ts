import * as Type from '../../kernel/schema.ts'
import type { Static, TObject, TSchema } from '../../kernel/schema.ts'
import { DeletedLink } from '../../db/links/names/deleted.ts'
import { CheckedLink } from '../../db/links/visits/health.ts'
import { Change } from '../../db/links/names/history.ts'
import { Link } from '../../db/links/names/links.ts'
import { Tag } from '../../db/links/names/tags.ts'
import { User } from '../../db/links/people/users.ts'
import { nullable } from '../../db/sql-file.ts'
import { decodeCursor, encodeCursor } from '../../kernel/cursor.ts'
import { queryOf, type Context } from '../../kernel/http/context.ts'
import { parsed, withDefault } from '../../kernel/validate.ts'
import { OTHER_LIST } from '../../services/links/names/lists/filter.ts'
import type { Slice } from '../../services/links/names/lists/lists.ts'

const DEFAULT_LIMIT = 50
const MAX_LIMIT = 200

/** A list's rows under their name, and where its next page begins. */
type Page<Name extends string, Row> = Record<Name, Row[]> & { next_cursor: string | null }

/**
 * The query of a list (links.md section 8); `cursor` becomes the key that the page begins after.
 */
function pageQuery(name: string, keyForm: RegExp) {
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
      OTHER_LIST,
      (given) => {
        const [after, of] = decodeCursor(String(given)) ?? []
        if (typeof after !== 'string' || !keyForm.test(after)) return undefined
        return of === name ? after : undefined
      },
    ),
  })
}

/** The part of a list that is asked for. */
export type PageQuery = Static<ReturnType<typeof pageQuery>>

/** The database takes no NUL, so none of our cursors has one. */
const TEXT = /^[^\0]*$/
const NUMBER = /^\d{1,15}$/

/**
 * A list of rows sorted by `key`. `name` names the rows: cursors of lists with other rows are
 * refused, because their key means something else.
 */
function listOf<Name extends string, Schema extends TSchema>(
  name: Name,
  row: Schema,
  key: string & keyof Static<Schema>,
  keyForm = TEXT,
) {
  type Row = Static<Schema>
  const next_cursor = nullable(Type.String({ description: 'null on the last page' }))
  const schema = Type.Object({ [name]: Type.Array(row), next_cursor })
  return {
    query: pageQuery(name, keyForm),
    returns: {
      description: `A page of ${name}`,
      schema: schema as unknown as TObject & { static: Page<Name, Row> },
    },

    /** Reads a page. One row more than it holds tells whether there is a next one. */
    async read(
      { limit, cursor = '' }: PageQuery,
      list: (slice: Slice) => Promise<readonly Row[]>,
    ): Promise<Page<Name, Row>> {
      const rows = await list({ after: cursor, limit: limit + 1 })
      const shown = rows.slice(0, limit)
      const last = rows.length > limit ? shown.at(-1) : undefined
      const next_cursor = last === undefined ? null : encodeCursor([String(last[key]), name])
      return { [name]: shown, next_cursor } as Page<Name, Row>
    },
  }
}

export const linkList = listOf('links', Link, 'slug')
export const tagList = listOf('tags', Tag, 'slug')
export const userList = listOf('users', User, 'email')
export const deletedList = listOf('deleted_links', DeletedLink, 'deletion', NUMBER)
export const checkedList = listOf('checked_links', CheckedLink, 'slug')
export const changeList = listOf('changes', Change, 'id', NUMBER)

/** The part of a list with the newest rows first: they have the highest numbers. */
export function newestFirst({ after, limit }: Slice): { before: number; limit: number } {
  return { before: after === '' ? Number.MAX_SAFE_INTEGER : Number(after), limit }
}

/** The address of a list's next page: the same query, from a cursor on; null on the last page. */
export function nextAddress(context: Context, cursor: string | null): string | null {
  if (cursor === null) return null
  const query = new URLSearchParams(queryOf(context))
  query.set('cursor', cursor)
  return `${context.path}?${query.toString()}`
}
