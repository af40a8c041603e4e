import { createHash } from 'node:crypto'
import type { Executor, Transaction } from '../client.ts'
import * as Type from '../../kernel/schema.ts'
import type { Static } from '../../kernel/schema.ts'
import { nullable, many, sqlFile } from '../sql-file.ts'

/** The most rows of a portion. */
const MAX_ROWS = 512

/**
 * Every server writes the same value as the same text. Rows come by their key, never through a
 * sort. Statements are not compiled: that takes longer than most of them run.
 */
const SETTINGS = `
set local timezone = 'UTC';
set local datestyle = 'ISO, MDY';
set local bytea_output = 'hex';
set local extra_float_digits = 1;
set local jit = off;
set local enable_sort = off;
set local enable_seqscan = off`

/** Makes a transaction read and write values in one text format. */
export async function pinTextFormat(tx: Transaction): Promise<void> {
  await tx.script(SETTINGS)
}

/**
 * Reads the rows of a table in the order of its key. A row is a JSON object in one line, with the
 * texts of its columns. The pieces of its large values follow it, one at a time. Holds about a
 * megabyte.
 */
export async function* readRows(tx: Transaction, table: Table): AsyncGenerator<readonly string[]> {
  for await (const rows of readAs(tx, table, 'row_to_json(r)::text')) {
    yield rows.map(({ text }) => text)
    // A row with a large value is read alone.
    const [row] = rows
    if (row === undefined || rows.length > 1) continue
    for (const { column, pieces } of largeValues(table, row.text)) {
      const text = `select substring(t.${column} from $2::integer for ${PIECE})::text as text
        from ${table.name} t where ${compareKey(table, '=')}`
      for (let at = 0; at < pieces; at++) {
        const [found] = await run<Row>(tx, text, [row.key, at * PIECE + 1])
        if (found !== undefined) yield [found.text]
      }
    }
  }
}

/** What a table holds; the database hashes the rows. `next_id` is null without ids. */
export async function contentsOf(tx: Executor, table: Table, onRows?: (rows: number) => void) {
  const digest = createDigest()
  const hash = `encode(sha256(convert_to(row_to_json(r)::text, 'UTF8')), 'hex')`
  for await (const hashes of readAs(tx, table, hash)) {
    for (const { text } of hashes) digest.add(text)
    onRows?.(hashes.length)
  }
  return { name: table.name, ...digest.result(), next_id: await nextId(tx, table) }
}

/** The id of the table's next row; null if it has no sequence. */
export async function nextId(tx: Executor, { sequence }: Table): Promise<number | null> {
  if (sequence === null) return null
  const text = `
    select case when is_called then last_value + 1 else last_value end as next_id
      from ${sequence}`
  const [row] = await run<{ next_id: number }>(tx, text)
  return row?.next_id ?? null
}

/** Something read from a row, and the row's key as a JSON list. */
interface Row {
  text: string
  key: string
}

/**
 * Reads rows in portions of `PIECE` bytes, at least one row each. Each portion begins after the
 * last key of the previous one.
 */
async function* readAs(tx: Executor, table: Table, text: string): AsyncGenerator<readonly Row[]> {
  const { name, columns } = table
  const size = columns.map((column) => `coalesce(${column.size}, 0)`).join(' + ')
  const texts = columns.map((column) => `${textOf(column)} as ${column.name}`).join(', ')
  const key = keyOf(table)
  const portion = (condition: string) => `
    select ${text} as text, json_build_array(${key})::text as key
      from (select t.*, sum(row_size) over (order by ${key}) as portion_size
              from (select t.*, ${size} as row_size from ${name} t
                     where ${condition} order by ${key} limit ${MAX_ROWS}) t) t
     cross join lateral (select ${texts}) r
     where portion_size <= ${PIECE} or portion_size = row_size
     order by ${key}`
  const next = portion(compareKey(table, '>'))
  let rows = await run<Row>(tx, portion('true'))
  while (rows.length > 0) {
    yield rows
    rows = await run<Row>(tx, next, [rows.at(-1)?.key])
  }
}

/** SQL for the key of a row `t`. */
function keyOf({ key }: Table) {
  return key.map(({ name }) => `t.${name}`).join(', ')
}

/** SQL that compares the key of a row `t` with the first argument: a key as a JSON list. */
function compareKey(table: Table, operator: '=' | '>') {
  const values = table.key.map(({ type }, at) => `($1::text::json ->> ${at})::${type}`)
  return `(${keyOf(table)}) ${operator} (${values.join(', ')})`
}

/** Runs a statement that is built from names of tables; its rows have no schema. */
export async function run<R>(
  tx: Executor,
  text: string,
  args: readonly unknown[] = [],
): Promise<readonly R[]> {
  return (await tx.run({ name: 'transfer', text }, args)) as readonly R[]
}

/**
 * A longer `bytea` is replaced in its row by `@SHA-256:LENGTH`. Its bytes follow the row, in
 * pieces of this size, so that no database holds more of it than the value itself. Part of the
 * backup's format.
 */
const PIECE = 512 * 1024

/** SQL for the text of a column. */
function textOf({ name, type }: Table['columns'][number]) {
  const whole = `t.${name}::text`
  if (type !== 'bytea') return whole
  const length = `octet_length(t.${name})`
  const mark = `'@' || encode(sha256(t.${name}), 'hex') || ':' || ${length}`
  return `case when ${length} > ${PIECE} then ${mark} else ${whole} end`
}

/**
 * SQL for the value of a column from its text; large values are joined from the table `pieces`.
 */
export function valueOf({ name, type }: Table['columns'][number]): string {
  const whole = `r.${name}::${type}`
  if (type !== 'bytea') return whole
  const joined = `
    select string_agg(p.piece, '' order by p.place)
      from pieces p where p.mark = r.${name}`
  return `case when r.${name} like '@%' then (${joined}) else ${whole} end`
}

/** The large values of a row, in the order of its columns; marks stand for them in the row. */
export function largeValues({ columns }: Table, row: string) {
  if (!row.includes('":"@')) return []
  const texts: Readonly<Record<string, string | null>> = JSON.parse(row)
  return columns.flatMap(({ name, member, type }) => {
    const mark = type === 'bytea' ? texts[member] : null
    const [, length] = /^@[\da-f]{64}:(\d{1,10})$/.exec(mark ?? '') ?? []
    if (mark === undefined || mark === null || length === undefined) return []
    return [{ mark, column: name, pieces: Math.ceil(Number(length) / PIECE) }]
  })
}

/** Whether a line is a piece, and not a row. */
export function isPiece(line: string): boolean {
  return line.startsWith('\\x')
}

/**
 * Counts rows and computes the SHA-256 of the SHA-256s of their texts in the order of the key.
 * `add` takes the next row's, in hexadecimal.
 */
export function createDigest() {
  const all = createHash('sha256')
  let rows = 0
  return {
    add(hash: string) {
      all.update(hash, 'hex')
      rows += 1
    },
    result: () => ({ rows, sha256: all.copy().digest('hex') }),
  }
}

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
  /** The columns of the primary key. Its texts have the order of their bytes on every server. */
  key: Type.Array(Type.Object({ name: Type.String(), type: Type.String() })),
  identity: nullable(Type.String()),
  sequence: nullable(Type.String()),
  /** The other tables that its foreign keys name. */
  refers_to: Type.Array(Type.String()),
})
export type Table = Static<typeof Table>

export const transferQueries = sqlFile('sql/transfer.sql', {
  listTransferTables: many(Table, {}),
})

/** All tables of the services and the audit, each after those that it refers to, else by name. */
export async function listTables(db: Executor): Promise<readonly Table[]> {
  const rows = await transferQueries.listTransferTables(db, {})
  const waiting = new Map(rows.map((table) => [table.name, table]))
  const sorted: Table[] = []
  while (waiting.size > 0) {
    const isNext = ({ refers_to }: Table) => !refers_to.some((other) => waiting.has(other))
    const next = waiting.values().find(isNext)
    if (next === undefined) throw new Error('tables refer to each other in a circle')
    waiting.delete(next.name)
    sorted.push(next)
  }
  return sorted
}
