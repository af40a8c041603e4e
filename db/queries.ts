import type { TSchema } from 'typebox'
import { assetText } from '../kernel/assets.ts'
import type { Query, QueryResult } from './client.ts'

/** What a `db/<service>.ts` declares about each query of its file. */
export interface QueryShape {
  readonly args: readonly string[]
  readonly row?: TSchema
}

const HEADER = /^-- name: ([a-zA-Z]+) :(one|optional|many|exec)$/

/**
 * Loads the named queries of a SQL file and joins them with their declared shapes. Throws a
 * SyntaxError when file and declaration don't name the same queries.
 */
export function loadQueries<Name extends string>(
  file: string,
  shapes: Readonly<Record<Name, QueryShape>>,
): Readonly<Record<Name, Query>> {
  const declared = new Map<string, QueryShape>(Object.entries(shapes))
  const queries: Record<string, Query> = {}
  for (const part of assetText(file).split(/^(?=-- name: )/m)) {
    const [first = '', ...lines] = part.trim().split('\n')
    const header = HEADER.exec(first)
    if (header === null)
      throw new SyntaxError(`Cannot load "${file}": "${first}" is no query header`)
    const name = header[1] ?? ''
    const shape = declared.get(name)
    if (shape === undefined || name in queries) {
      throw new SyntaxError(`Cannot load "${file}": query "${name}" is undeclared or there twice`)
    }
    queries[name] = {
      name,
      text: lines.join('\n').replace(/;\s*$/, ''),
      result: header[2] as QueryResult,
      args: shape.args,
      row: shape.row,
    }
  }
  for (const name of declared.keys()) {
    if (!(name in queries))
      throw new SyntaxError(`Cannot load "${file}": query "${name}" is missing`)
  }
  return queries as Readonly<Record<Name, Query>>
}
