import type { Database, Executor, Transaction } from '../client.ts'
import { migrationState } from '../migrate.ts'
import { refuseUnfitServer } from '../server.ts'
import {
  digestOf,
  isPiece,
  isSame,
  largeValues,
  nextId,
  pinTextFormat,
  valueOf,
  listTables,
  run,
  type Table,
} from './rows.ts'
import type { Source, TableContents } from './source.ts'

/** Called when rows were written or verified. */
export type Progress = (doing: string, table: string, rows: number) => void

/** The result: whether all was there already, and what the tables hold. */
export interface Loaded {
  readonly wasThere: boolean
  readonly tables: readonly TableContents[]
}

/** The database has other rows; nothing was changed. */
export class NotEmpty extends Error {
  override name = 'NotEmpty'
}

/**
 * Writes all rows of `source` into the migrated database of this transaction, sets the next ids,
 * and compares every table with the source. A database that holds exactly that is left as it is.
 * One with other rows is refused with `NotEmpty`.
 */
export async function load(tx: Transaction, source: Source, progress: Progress): Promise<Loaded> {
  await pinTextFormat(tx)
  const tables = inOrderOf(source.names, await listTables(tx))
  const names = tables.map(({ name }) => name).join(', ')
  await run(tx, `lock table ${names} in exclusive mode`)
  const full = await firstWithContent(tx, tables)
  if (full === undefined) await writeAll(tx, tables, source, progress)
  const contents: TableContents[] = []
  for (const table of tables) {
    const wanted = await source.contents(table.name)
    const there = await digestOf(tx, table, (rows) => progress('verify', table.name, rows))
    if (!isSame(wanted, there) || wanted.next_id !== (await nextId(tx, table))) {
      if (full !== undefined) throw new NotEmpty(`${full} holds rows already`)
      throw new Error(
        `${table.name} did not arrive as it was (${there.rows} of ${wanted.rows} rows); nothing was changed`,
      )
    }
    contents.push(wanted)
  }
  return { wasThere: full !== undefined, tables: contents }
}

/**
 * The migration that wrote a row `t`: both have the same transaction. In a database loaded from a
 * dump all rows may have one transaction. So a migration counts only if no other one, and not the
 * creation of the table of migrations, shares its transaction.
 */
const MIGRATION_OF_ROW = `
select from gatehouse.migrations m
 where m.xmin = t.xmin
   and not exists (select from gatehouse.migrations o where o.xmin = m.xmin and o.number <> m.number)
   and not exists (select from pg_constraint c
                    where c.conrelid = 'gatehouse.migrations'::regclass and c.xmin = m.xmin)`

/** A table with a row that no migration wrote, if any. */
async function firstWithContent(
  tx: Executor,
  tables: readonly Table[],
): Promise<string | undefined> {
  for (const { name } of tables) {
    const text = `select exists (select from ${name} t where not exists (${MIGRATION_OF_ROW})) as there`
    const [row] = await run<{ there: boolean }>(tx, text)
    if (row?.there === true) return name
  }
  return undefined
}

function inOrderOf(names: readonly string[], tables: readonly Table[]): readonly Table[] {
  const found = names.flatMap((name) => tables.filter((table) => table.name === name))
  const each = new Set(names).size === names.length
  if (each && found.length === tables.length && found.length === names.length) return found
  throw new Error('the two databases do not have the same tables')
}

async function writeAll(
  tx: Transaction,
  tables: readonly Table[],
  source: Source,
  progress: Progress,
): Promise<void> {
  // The rows that migrations wrote are among those of the source.
  for (const { name } of tables.toReversed()) await run(tx, `delete from ${name}`)
  await tx.script(
    'create temporary table pieces (mark text, place serial, piece bytea) on commit drop',
  )
  for (const table of tables) {
    await writeRows(tx, table, source.rows(table.name), progress)
    const { next_id: next } = await source.contents(table.name)
    if (table.identity !== null && next !== null) {
      // Unlike setval() it is undone with the transaction.
      const column = `alter column ${table.identity} restart with ${next}`
      await run(tx, `alter table ${table.name} ${column}`)
    }
  }
  await tx.script(`analyze ${tables.map(({ name }) => name).join(', ')}`)
}

/** Rows come in the order of their keys: a session after its parent. */
async function writeRows(
  tx: Transaction,
  table: Table,
  batches: AsyncIterable<readonly string[]>,
  progress: Progress,
): Promise<void> {
  const insert = insertInto(table)
  /** A row whose large values have not all come, and the mark of each missing piece. */
  let unfinished: { readonly row: string; readonly marks: string[] } | undefined
  async function write(rows: readonly string[]): Promise<void> {
    if (rows.length === 0) return
    await run(tx, insert, [`[${rows.join(',')}]`])
    progress('copy', table.name, rows.length)
  }
  for await (const lines of batches) {
    const [first = '', last = first] = [lines[0], lines.at(-1)]
    if (isPiece(first)) {
      const mark = unfinished?.marks.shift()
      if (unfinished === undefined || mark === undefined)
        throw new Error('a piece belongs to no row')
      await run(tx, ADD_PIECE, [mark, first])
      if (unfinished.marks.length > 0) continue
      await write([unfinished.row])
      unfinished = undefined
      await tx.script('truncate pieces')
      continue
    }
    if (unfinished !== undefined) throw new Error('a row is without its pieces')
    const marks = largeValues(table, last).flatMap(({ mark, pieces }) =>
      Array.from({ length: pieces }, () => mark),
    )
    if (marks.length === 0) await write(lines)
    else {
      await write(lines.slice(0, -1))
      unfinished = { row: last, marks }
    }
  }
  if (unfinished !== undefined) throw new Error('a row is without its pieces')
}

const ADD_PIECE = 'insert into pieces (mark, piece) values ($1::text, $2::text::bytea)'

function insertInto({ name, columns }: Table): string {
  const names = columns.map((column) => column.name).join(', ')
  const values = columns.map(valueOf).join(', ')
  const texts = columns.map((column) => `${column.name} text`).join(', ')
  return `insert into ${name} (${names}) overriding system value
    select ${values} from json_to_recordset($1::text::json) as r (${texts})`
}

/**
 * Checks that rows can be written into a database, without changing it: the server must be new
 * enough, and the database empty, unless it is at migration `level`, because then `load` compares
 * it. Throws an Error with one line.
 *
 * @returns the database's migration; 0 for an empty one.
 */
export async function inspectTarget(db: Database, level: number): Promise<number> {
  const { read_only } = await refuseUnfitServer(db)
  if (read_only) throw new Error('the server takes no writes: give the primary')
  const { applied, faults } = await migrationState(db)
  if (faults[0] !== undefined) throw new Error(faults[0])
  if (applied.length === 0 || applied.length === level) return applied.length
  const full = await firstWithContent(db, await listTables(db))
  if (full !== undefined) throw new NotEmpty(`${full} holds rows already`)
  return applied.length
}
