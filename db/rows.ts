import Type from 'typebox'
import type { Executor, Query } from './client.ts'

/** A timestamp: a Date in the program, RFC 3339 in UTC with milliseconds as JSON. */
export const Timestamp = Type.Unsafe<Date>({ type: 'string', format: 'date-time' })

/** Raw bytes of a `bytea` column; never sent as JSON. */
export const Bytes = Type.Unsafe<Buffer>({ type: 'string', format: 'bytes' })

export const Uuid = Type.String({ format: 'uuid' })

/** A value or null. */
export function nullable<T extends Type.TSchema>(schema: T): Type.TUnion<[T, Type.TNull]> {
  return Type.Union([schema, Type.Null()])
}

/** The only row of a `:one` query; anything else is a bug in the query. */
export async function one<T>(db: Executor, query: Query, args: readonly unknown[]): Promise<T> {
  const rows = await db.run(query, args)
  if (rows.length !== 1) throw new Error(`${query.name}: expected one row, got ${rows.length}`)
  return rows[0] as T
}

/** The row of an `:optional` query, or undefined. */
export async function optional<T>(
  db: Executor,
  query: Query,
  args: readonly unknown[],
): Promise<T | undefined> {
  const rows = await db.run(query, args)
  if (rows.length > 1)
    throw new Error(`${query.name}: expected at most one row, got ${rows.length}`)
  return rows[0] as T | undefined
}

/** All rows of a `:many` query. */
export async function many<T>(
  db: Executor,
  query: Query,
  args: readonly unknown[],
): Promise<readonly T[]> {
  return (await db.run(query, args)) as readonly T[]
}
