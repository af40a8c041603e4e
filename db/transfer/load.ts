import { isDeepStrictEqual } from 'node:util'
import type { Database, Executor, Transaction } from '../client.ts'
import { migrationState } from '../migrate.ts'
import { refuseUnfitServer } from '../server.ts'
import {
  contentsOf,
  isPiece,
  largeValues,
  pinTextFormat,
  valueOf,
  listTables,
  run,
  type Table,
} from './rows.ts'
import type { Source, TableContents } from './source.ts'

/** A table, and where its rows come from. */
interface Target extends Table {
  source: Source
}

/** Called when rows were written or verified. */
export type Progress = (doing: string, table: string, rows: number) => void

/** The result: whether all was there already, and what the tables hold. */
export interface Loaded {
  wasThere: boolean
  tables: readonly TableContents[]
}

/** The database has other rows; nothing was changed. */
export class NotEmpty extends Error {
  override name = 'NotEmpty'
}

/**
 * Writes all rows of `sources` into the migrated database of this transaction, sets the next ids,
 * and compares every table with its source. A database that holds exactly that is left as it is.
 * One with other rows is refused with `NotEmpty`.
 */
export async function load(
  tx: Transaction,
  sources: readonly Source[],
  progress: Progress,
): Promise<Loaded> {
  await pinTextFormat(tx)
  const tables = inOrderOf(sources, await listTables(tx))
  const names = tables.map(({ name }) => name).join(', ')
  await run(tx, `lock table ${names} in exclusive mode`)
  const full = await firstWithContent(tx, tables)
  if (full === undefined) await writeAll(tx, tables, progress)
  const contents: TableContents[] = []
  for (const table of tables) {
    const wanted = await table.source.contents()
    const there = await contentsOf(tx, table, (rows) => progress('verify', table.name, rows))
    if (!isDeepStrictEqual(there, wanted)) {
      if (full !== undefined) throw new NotEmpty(`${full} holds rows already`)
      const count = `${there.rows} of ${wanted.rows} rows`
      throw new Error(`${table.name} did not arrive as it was (${count}); nothing was changed`)
    }
    contents.push(wanted)
  }
  return { wasThere: full !== undefined, tables: contents }
}

/**
 * Tables in which migrations and starts write rows. Every change that a person makes to them has a
 * line in `audit.changes`.
 */
const FILLED_BY_ITSELF = [
  'hooks.installation',
  'hooks.providers',
  'hooks.secret_key',
  'hooks.settings',
  'ops.settings',
]

/** A table with a row that no migration wrote, if any. */
async function firstWithContent(
  tx: Executor,
  tables: readonly Table[],
): Promise<string | undefined> {
  for (const { name } of tables) {
    if (FILLED_BY_ITSELF.includes(name)) continue
    const text = `select exists (select from ${name}) as there`
    const [row] = await run<{ there: boolean }>(tx, text)
    if (row?.there === true) return name
  }
  return undefined
}

function inOrderOf(sources: readonly Source[], tables: readonly Table[]): readonly Target[] {
  function namesOf(all: readonly { name: string }[]) {
    return all.map(({ name }) => name).toSorted()
  }
  if (!isDeepStrictEqual(namesOf(sources), namesOf(tables)))
    throw new Error('the two databases do not have the same tables')
  return sources.flatMap((source) => {
    const table = tables.find(({ name }) => name === source.name)
    return table === undefined ? [] : [{ ...table, source }]
  })
}

async function writeAll(
  tx: Transaction,
  tables: readonly Target[],
  progress: Progress,
): Promise<void> {
  // The rows that migrations wrote are among those of the source.
  for (const { name } of tables.toReversed()) await run(tx, `delete from ${name}`)
  await tx.script(
    'create temporary table pieces (mark text, place serial, piece bytea) on commit drop',
  )
  for (const table of tables) {
    await writeRows(tx, table, progress)
    const { next_id: next } = await table.source.contents()
    if (table.identity !== null && next !== null) {
      // Unlike setval() it is undone with the transaction.
      const column = `alter column ${table.identity} restart with ${next}`
      await run(tx, `alter table ${table.name} ${column}`)
    }
  }
  await tx.script(`analyze ${tables.map(({ name }) => name).join(', ')}`)
}

/** Rows come in the order of their keys: a session after its parent. */
async function writeRows(tx: Transaction, table: Target, progress: Progress) {
  const insert = insertInto(table)
  const batches = table.source.rows()
  async function write(rows: readonly string[]) {
    if (rows.length === 0) return
    await run(tx, insert, [`[${rows.join(',')}]`])
    progress('copy', table.name, rows.length)
  }
  for await (const lines of batches) {
    // A row with large values is the last of its batch, and their pieces follow.
    const large = largeValues(table, lines.at(-1) ?? '')
    if (large.length === 0) {
      await write(lines)
      continue
    }
    await write(lines.slice(0, -1))
    for (const { mark, pieces } of large) {
      for (let left = pieces; left > 0; left--) {
        const { value } = await batches.next()
        if (!isPiece(value?.[0] ?? '')) throw new Error('a row is without its pieces')
        await run(tx, ADD_PIECE, [mark, value[0]])
      }
    }
    await write(lines.slice(-1))
    await tx.script('truncate pieces')
  }
}

const ADD_PIECE = 'insert into pieces (mark, piece) values ($1::text, $2::text::bytea)'

function insertInto({ name, columns }: Table) {
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
