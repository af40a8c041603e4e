import Type, { type Static } from 'typebox'
import type { Executor, Query } from '../client.ts'
import { nullable, many, sqlFile } from '../sql-file.ts'

/** A table whose rows are carried from one database to another. All names are quoted for SQL. */
const Table = Type.Object({
  name: Type.String(),
  /** Without those that PostgreSQL makes of others; `member` is the name as it is, in JSON. */
  columns: Type.Array(
    Type.Object({
      name: Type.String(),
      member: Type.String(),
      type: Type.String(),
      size: Type.String(),
    }),
  ),
  /** The primary key as an order that is the same on every server, whatever its locale. */
  key: Type.Array(Type.String()),
  identity: nullable(Type.String()),
  sequence: nullable(Type.String()),
  /** The other tables that its foreign keys name. */
  refers_to: Type.Array(Type.String()),
})
export type Table = Static<typeof Table>

export const transferQueries = sqlFile('sql/transfer.sql', {
  listTransferTables: many(Table, {}),
})

/** The tables of the three services, each after those that it refers to, else by name. */
export async function listTables(db: Executor): Promise<readonly Table[]> {
  const rows = await transferQueries.listTransferTables(db, {})
  const waiting = new Map(rows.map((table) => [table.name, table]))
  const sorted: Table[] = []
  while (waiting.size > 0) {
    const next = [...waiting.values()].find(({ refers_to: others }) =>
      others.every((other) => !waiting.has(other)),
    )
    if (next === undefined) {
      throw new Error(
        `these tables refer to each other in a circle: ${[...waiting.keys()].join(', ')}`,
      )
    }
    waiting.delete(next.name)
    sorted.push(next)
  }
  return sorted
}

/** A statement built from names of tables; its rows have no schema. */
export function statement(name: string, text: string, args: readonly string[] = []): Query {
  return { name, text, result: 'many', args, row: undefined }
}
