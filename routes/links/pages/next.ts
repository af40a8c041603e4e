import { encodeCursor } from '../../../kernel/text.ts'

/** What a page of a list shows, and the address of the next one. */
export interface Listed<Row> {
  readonly shown: readonly Row[]
  /** Null on the last page. */
  readonly next: string | null
}

/**
 * A page of a keyset list from one row more than it holds, which tells that there is a next page; that
 * one has the same query, from further on.
 */
export function listed<Row>(
  rows: readonly Row[],
  limit: number,
  keyOf: (row: Row) => string,
  path: string,
  query: URLSearchParams,
): Listed<Row> {
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  if (rows.length <= limit || last === undefined) return { shown, next: null }
  const following = new URLSearchParams(query)
  following.set('cursor', encodeCursor([keyOf(last)]))
  return { shown, next: `${path}?${following.toString()}` }
}
