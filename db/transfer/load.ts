import type { Executor, Transaction } from '../client.ts'
import { isSame, type Digest } from './digest.ts'
import { isPiece, largeValues, valueOf } from './large-values.ts'
import { digestOf, nextId, speakText } from './rows.ts'
import { listTables, statement, type Table } from './tables.ts'

/** What a table of the source has beside its rows. */
export interface Carried extends Digest {
  readonly name: string
  readonly next_id: number | null
}

/** Where rows come from: another database, or a backup. */
export interface Source {
  /** The names of its tables. */
  readonly names: readonly string[]
  rows(name: string): AsyncIterable<readonly string[]>
  /** What a table holds; of a table that was read, what was read. */
  carried(name: string): Promise<Carried>
}

/** Is told of rows that were written or verified. */
export type Progress = (doing: string, table: string, rows: number) => void

/** What came of it: whether anything had to be written, and what the tables hold. */
export interface Loaded {
  readonly wasThere: boolean
  readonly tables: readonly Carried[]
}

/** Thrown where the database is not one to write into; nothing was changed. */
export class NotEmpty extends Error {
  override name = 'NotEmpty'
}

/**
 * Writes all rows of `source` into the migrated database of this transaction, has ids go on where they
 * would have, and compares every table with the source before the transaction's end. A database that
 * has just that already is left as it is; one that has anything else is refused with `NotEmpty`.
 */
export async function load(tx: Transaction, source: Source, progress: Progress): Promise<Loaded> {
  await speakText(tx)
  const tables = inOrderOf(source.names, await listTables(tx))
  const names = tables.map(({ name }) => name).join(', ')
  await tx.run(statement('lock', `lock table ${names} in exclusive mode`), [])
  const full = await firstWithContent(tx, tables)
  if (full === undefined) await writeAll(tx, tables, source, progress)
  const carried: Carried[] = []
  for (const table of tables) {
    const wanted = await source.carried(table.name)
    const there = await digestOf(tx, table, (rows) => progress('verify', table.name, rows))
    if (!isSame(wanted, there) || wanted.next_id !== (await nextId(tx, table))) {
      if (full !== undefined) throw new NotEmpty(`${full} holds rows already`)
      throw new Error(
        `${table.name} did not arrive as it was (${there.rows} of ${wanted.rows} rows); nothing was changed`,
      )
    }
    carried.push(wanted)
  }
  return { wasThere: full !== undefined, tables: carried }
}

/**
 * A row that a migration has made bears its transaction. A database loaded from a dump may have all rows of one
 * transaction, so a migration counts only while it shares its own with no other, nor with the making of their table.
 */
const MADE = `
select from gatehouse.migrations m
 where m.xmin = t.xmin
   and not exists (select from gatehouse.migrations o where o.xmin = m.xmin and o.number <> m.number)
   and not exists (select from pg_constraint c
                    where c.conrelid = 'gatehouse.migrations'::regclass and c.xmin = m.xmin)`

/** A table with a row that no migration has made; undefined when there is none. */
export async function firstWithContent(
  tx: Executor,
  tables: readonly Table[],
): Promise<string | undefined> {
  for (const { name } of tables) {
    const text = `select exists (select from ${name} t where not exists (${MADE})) as there`
    const [row] = (await tx.run(statement('content', text), [])) as readonly { there: boolean }[]
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
  // What the migrations have put there is among the rows that come.
  for (const { name } of tables.toReversed()) {
    await tx.run(statement('empty', `delete from ${name}`), [])
  }
  await tx.script(
    'create temporary table pieces (mark text, place serial, piece bytea) on commit drop',
  )
  for (const table of tables) {
    await writeRows(tx, table, source.rows(table.name), progress)
    const { next_id: next } = await source.carried(table.name)
    if (table.identity !== null && next !== null) {
      // Unlike setval() it is undone with the transaction.
      const column = `alter column ${table.identity} restart with ${next}`
      await tx.run(statement('restart', `alter table ${table.name} ${column}`), [])
    }
  }
  await tx.script(`analyze ${tables.map(({ name }) => name).join(', ')}`)
}

/** Rows come in the order of their keys: a session after the one that it comes from. */
async function writeRows(
  tx: Transaction,
  table: Table,
  batches: AsyncIterable<readonly string[]>,
  progress: Progress,
): Promise<void> {
  const insert = insertInto(table)
  /** The row whose large values are on their way, and the mark of each piece that is to come. */
  let unfinished: { readonly row: string; readonly marks: string[] } | undefined
  async function write(rows: readonly string[]): Promise<void> {
    if (rows.length === 0) return
    await tx.run(insert, [`[${rows.join(',')}]`])
    progress('copy', table.name, rows.length)
  }
  for await (const lines of batches) {
    const [first = '', last = first] = [lines[0], lines.at(-1)]
    if (isPiece(first)) {
      const mark = unfinished?.marks.shift()
      if (unfinished === undefined || mark === undefined)
        throw new Error('a piece belongs to no row')
      await tx.run(ADD_PIECE, [mark, first])
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

const ADD_PIECE = statement(
  'addPiece',
  'insert into pieces (mark, piece) values ($1::text, $2::text::bytea)',
  ['text', 'text'],
)

function insertInto({ name, columns }: Table) {
  const names = columns.map((column) => column.name).join(', ')
  const values = columns.map(valueOf).join(', ')
  const texts = columns.map((column) => `${column.name} text`).join(', ')
  return statement(
    'insert',
    `insert into ${name} (${names}) overriding system value
     select ${values} from json_to_recordset($1::text::json) as r (${texts})`,
    ['text'],
  )
}
