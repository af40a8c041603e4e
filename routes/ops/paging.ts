import Type, { type Static, type TObject, type TSchema } from 'typebox'
import type { Listed } from '../../html/ops/layout.ts'
import type { Call, Endpoint } from '../../kernel/http/endpoint.ts'
import { field, parsed, withDefault } from '../../kernel/validate.ts'
import { api, type Caller, type OpsApp } from './kit.ts'

/** A list of the API: an object whose only member, such as `events`, has the rows. */
export function listApi<Query extends TObject, Row extends TSchema>(
  noun: string,
  declared: {
    summary: string
    row: Row
    query?: Query
    list: (call: Call<OpsApp, Caller, unknown, Static<Query>>) => Promise<readonly Static<Row>[]>
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
