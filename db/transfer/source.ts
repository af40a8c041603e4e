import { hash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { pipeline } from 'node:stream'
import { createZstdDecompress } from 'node:zlib'
import type { Transaction } from '../client.ts'
import { HEAD, type Contents } from './backup-file.ts'
import {
  contentsOf,
  createDigest,
  isPiece,
  nextId,
  pinTextFormat,
  readRows,
  listTables,
  type Table,
} from './rows.ts'

/** What a table holds. `next_id`: the id of its next row; null without ids. */
export type TableContents = Contents['tables'][number]

/** A table of a database or of a backup, to be read. */
export interface Source {
  name: string
  rows(): AsyncGenerator<readonly string[]>
  /** What it holds; if its rows were read, what was read. */
  contents(): Promise<TableContents>
}

/**
 * Opens the tables of a database as they are at this moment. Must come first in its transaction.
 */
export async function openDatabaseSources(tx: Transaction): Promise<readonly Source[]> {
  await tx.script('set transaction isolation level repeatable read, read only')
  await pinTextFormat(tx)
  return (await listTables(tx)).map((table) => openTable(tx, table))
}

function openTable(tx: Transaction, table: Table): Source {
  const { name } = table
  let read: TableContents | undefined
  return {
    name,
    async *rows() {
      const digest = createDigest()
      for await (const rows of ahead(readRows(tx, table))) {
        for (const row of rows) if (!isPiece(row)) digest.add(hash('sha256', row))
        yield rows
      }
      read = { name, ...digest.result(), next_id: await nextId(tx, table) }
    },
    contents: async () => read ?? (await contentsOf(tx, table)),
  }
}

/** Reads the next batch while one is processed. */
async function* ahead<T>(batches: AsyncGenerator<T>): AsyncGenerator<T> {
  let next = batches.next()
  for (;;) {
    const { value, done } = await next
    if (done === true) return
    next = batches.next()
    // The consumer may have stopped at a failure of its own.
    next.catch(() => undefined)
    yield value
  }
}

/** Text of a batch of rows; a longer row is a batch by itself. */
const BATCH_LENGTH = 1024 * 1024
/** Longer than any row. A compressed line may expand to any size, and is held as a whole. */
const MAX_LINE_BYTES = 128 * 1024 * 1024

/** Opens the tables of a verified backup. They must be read in the backup's order, each once. */
export function openBackupSources(path: string, { tables }: Contents): readonly Source[] {
  const lines = linesOf(path)
  /** A line that was read but not used yet. */
  let held: string | undefined
  async function* rowsOf(count: number): AsyncGenerator<readonly string[]> {
    let left = count
    let rows: string[] = []
    let length = 0
    for (;;) {
      held ??= (await lines.next()).value
      const piece = held !== undefined && isPiece(held)
      if (rows.length > 0 && (piece || length > BATCH_LENGTH || left === 0)) {
        yield rows
        rows = []
        length = 0
      }
      if (left === 0 && !piece) return
      if (held === undefined) throw new Error('the backup has fewer rows than it says')
      if (piece) yield [held]
      else {
        left -= 1
        rows.push(held)
        length += held.length
      }
      held = undefined
    }
  }
  return tables.map((table) => ({
    name: table.name,
    rows: () => rowsOf(table.rows),
    contents: () => Promise.resolve(table),
  }))
}

async function* linesOf(path: string): AsyncGenerator<string, undefined> {
  const text = createZstdDecompress()
  // An error of the file destroys the text.
  pipeline(createReadStream(path, { start: HEAD }), text, () => undefined)
  let parts: Buffer[] = []
  let length = 0
  for await (const chunk of text as AsyncIterable<Buffer>) {
    let from = 0
    for (let end = chunk.indexOf(0x0a); end >= 0; end = chunk.indexOf(0x0a, from)) {
      parts.push(chunk.subarray(from, end))
      yield Buffer.concat(parts).toString()
      parts = []
      length = 0
      from = end + 1
    }
    parts.push(chunk.subarray(from))
    length += chunk.length - from
    if (length > MAX_LINE_BYTES) throw new Error('the backup has a row that is too long')
  }
  return undefined
}
