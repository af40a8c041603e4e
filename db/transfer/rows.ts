import type { Executor, Transaction } from '../client.ts'
import { createDigest, type Digest } from './digest.ts'
import { largeValues, PIECE, textOf } from './large-values.ts'
import { statement, type Table } from './tables.ts'

/** Rows whose sizes are asked for at once. */
const SIZES = 1024

/**
 * Has values written as the same text by every server. The rows come by their key, never through a sort
 * of them, and no statement is compiled: that takes longer than most of them run.
 */
const SETTINGS = `
set local timezone = 'UTC';
set local datestyle = 'ISO, MDY';
set local bytea_output = 'hex';
set local extra_float_digits = 1;
set local jit = off;
set local enable_sort = off;
set local enable_seqscan = off`

/** Readies a transaction for reading and writing texts of rows. */
export async function speakText(tx: Transaction): Promise<void> {
  await tx.script(SETTINGS)
}

/** Has a transaction see one moment; it must come first. */
export async function holdMoment(tx: Transaction): Promise<void> {
  await tx.script('set transaction isolation level repeatable read, read only')
}

/**
 * The rows of a table in the order of its key, each as the text of a JSON object in one line whose
 * members are the texts of its columns, and behind a row with large values one piece of them at a time.
 * It holds about a megabyte of text.
 */
export async function* readRows(tx: Transaction, table: Table): AsyncGenerator<readonly string[]> {
  for await (const rows of readAs(tx, table, 'row_to_json(r)::text')) {
    yield rows.map(({ text }) => text)
    // A row with a large value is read alone.
    const [row] = rows
    if (row === undefined || rows.length > 1) continue
    for (const { column, pieces } of largeValues(table, row.text)) {
      const piece = statement(
        'piece',
        `select substring(t.${column} from $1::integer for ${PIECE})::text as text
           from ${table.name} t where t.ctid = $2::text::tid`,
        ['int4', 'text'],
      )
      for (let at = 0; at < pieces; at++) {
        const args = [at * PIECE + 1, row.place]
        const [found] = (await tx.run(piece, args)) as readonly { text: string }[]
        if (found !== undefined) yield [found.text]
      }
    }
  }
}

/** The digest of a table, made where the rows are. */
export async function digestOf(
  tx: Transaction,
  table: Table,
  seen: (rows: number) => void = () => undefined,
): Promise<Digest> {
  const digest = createDigest()
  const hash = `encode(sha256(convert_to(row_to_json(r)::text, 'UTF8')), 'hex')`
  for await (const hashes of readAs(tx, table, hash)) {
    for (const { text } of hashes) digest.add(text)
    seen(hashes.length)
  }
  return digest.result()
}

/** The id that the table's next row will get; null where it has no sequence. */
export async function nextId(tx: Executor, { sequence }: Table): Promise<number | null> {
  if (sequence === null) return null
  const text = `select case when is_called then last_value + 1 else last_value end as next_id from ${sequence}`
  const [row] = (await tx.run(statement('nextId', text), [])) as readonly { next_id: number }[]
  return row?.next_id ?? null
}

/** What is read of a row, and where it lies. */
interface Row {
  readonly text: string
  readonly place: string
}

async function* readAs(
  tx: Executor,
  { name, columns, key }: Table,
  text: string,
): AsyncGenerator<readonly Row[]> {
  const size = columns.map((column) => `coalesce(${column.size}, 0)`).join(' + ')
  const texts = columns.map((column) => `${textOf(column)} as ${column.name}`).join(', ')
  const order = key.map((column) => `t.${column}`).join(', ')
  const of = `from ${name} t`
  const what = `${text} as text, t.ctid::text as place ${of} cross join lateral (select ${texts}) r`
  await run(tx, `declare sizes no scroll cursor for select ${size} as size ${of} order by ${order}`)
  await run(tx, `declare texts no scroll cursor for select ${what} order by ${order}`)
  for (;;) {
    const sizes = await run<{ size: number }>(tx, `fetch ${SIZES} from sizes`)
    if (sizes.length === 0) break
    for (const count of portions(sizes.map((row) => row.size))) {
      yield await run<Row>(tx, `fetch ${count} from texts`)
    }
  }
  await run(tx, 'close sizes')
  await run(tx, 'close texts')
}

/** Cuts rows into counts to be read at once: powers of two, so that there are few different statements. */
function* portions(sizes: readonly number[]): Generator<number> {
  for (let at = 0; at < sizes.length;) {
    let count = 1
    while (at + 2 * count <= sizes.length && total(sizes, at, 2 * count) <= PIECE) count *= 2
    yield count
    at += count
  }
}

function total(sizes: readonly number[], from: number, count: number): number {
  return sizes.slice(from, from + count).reduce((sum, size) => sum + size, 0)
}

async function run<R>(tx: Executor, text: string): Promise<readonly R[]> {
  return (await tx.run(statement('transfer', text), [])) as readonly R[]
}
