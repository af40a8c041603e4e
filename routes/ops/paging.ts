import * as Type from '../../kernel/schema.ts'
import type { Static, TObject, TSchema } from '../../kernel/schema.ts'
import type { Listed } from '../../html/ops/layout.ts'
import type { Call, Endpoint } from '../../kernel/http/declaration.ts'
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

/**
 * The place of a row in its list: the value that orders the list, as a number, then what tells
 * apart the rows that have the same value.
 */
export interface Key<Id extends number | string = number> {
  rank: number
  id: Id
}

/** No row of a list by time comes before it. */
export const LATEST: Key = { rank: Date.UTC(9999, 11, 31), id: Number.MAX_SAFE_INTEGER }
/** No memory is surer than 1. */
const SUREST: Key = { rank: 1, id: 0 }
/** No row of a list by state comes before it. */
export const WORST: Key<string> = { rank: 0, id: '' }

/** Which page of a list. */
interface PageQuery {
  limit: number
  after: Key<number | string>
}

/** Where a page begins: after the row with this key, such as `1764148800000_41`. */
function after<Id extends number | string>(
  first: Key<Id>,
  readId: (text: string) => Id | undefined,
) {
  const shown = Type.Unsafe<Key<Id>>({ type: 'string' })
  return parsed(withDefault(shown, first), 'must be the key of a row', (text) => {
    const [, number, last = ''] = /^([\d.e-]{1,24})_([^]+)$/.exec(String(text)) ?? []
    const [rank, id] = [Number(number), readId(last)]
    return id !== undefined && rank >= 0 && rank <= LATEST.rank ? { rank, id } : undefined
  })
}

function readNumber(text: string): number | undefined {
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined
}

/** The query of a page of a list by time, newest first. */
export function pagingByTime(defaultLimit: number) {
  return { limit: paging(defaultLimit).limit, after: after(LATEST, readNumber) }
}

/** The query of a page of a list by confidence, surest first. */
export function pagingByConfidence(defaultLimit: number) {
  return { limit: paging(defaultLimit).limit, after: after(SUREST, readNumber) }
}

/** The query of a page of a list by state, worst first, then by name. */
export function pagingByState(defaultLimit: number) {
  return { limit: paging(defaultLimit).limit, after: after(WORST, (name) => name || undefined) }
}

/**
 * A page of a list that changes while it is read. The next page begins after the key of the last
 * row: a row that came meanwhile moves no other row to the next page.
 */
export async function readPageAfter<Row, Query extends PageQuery>(
  path: string,
  query: Query,
  keyOf: (row: Row) => Query['after'],
  list: (query: Query) => Promise<readonly Row[]>,
): Promise<Listed<Row>> {
  const { limit } = query
  // One row more tells whether there is a next page.
  const listed = await list({ ...query, limit: limit + 1 })
  const rows = listed.slice(0, limit)
  const last = rows.at(-1)
  if (listed.length <= limit || last === undefined) return { rows, older: undefined }
  const { rank, id } = keyOf(last)
  return { rows, older: addressOf(path, { ...query, after: `${rank}_${id}` }) }
}

/** The address of a page, without what the first page has by itself. */
export function pathOf(path: string, { limit, after: key }: PageQuery, first: PageQuery): string {
  const isFirst = key.rank === first.after.rank && key.id === first.after.id
  const given = {
    ...(limit !== first.limit && { limit }),
    ...(!isFirst && { after: `${key.rank}_${key.id}` }),
  }
  return Object.keys(given).length === 0 ? path : addressOf(path, given)
}

function addressOf(path: string, query: object): string {
  const given = Object.entries(query)
    .filter(([, value]) => value !== null)
    .map(([name, value]) => [name, String(value)])
  return `${path}?${new URLSearchParams(given)}`
}
