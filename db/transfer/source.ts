import { hash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { pipeline } from 'node:stream'
import { createZstdDecompress } from 'node:zlib'
import type { Transaction } from '../client.ts'
import { HEAD, type Contents } from './backup-file.ts'
import {
  beginSnapshot,
  createDigest,
  digestOf,
  isPiece,
  nextId,
  pinTextFormat,
  readRows,
  type Digest,
  listTables,
  type Table,
} from './rows.ts'

/** What a table holds. `next_id`: the id of its next row; null without ids. */
export interface TableContents extends Digest {
  readonly name: string
  readonly next_id: number | null
}

/** A database or a backup, to be read. */
export interface Source {
  /** The names of its tables. */
  readonly names: readonly string[]
  rows(name: string): AsyncIterable<readonly string[]>
  /** What a table holds; if its rows were read, what was read. */
  contents(name: string): Promise<TableContents>
}

/** Opens a database as a source: all of it at this moment. Must come first in its transaction. */
export async function openDatabaseSource(tx: Transaction): Promise<Source> {
  await beginSnapshot(tx)
  await pinTextFormat(tx)
  const tables = new Map((await listTables(tx)).map((table) => [table.name, table]))
  const digests = new Map<string, Digest>()
  const find = (name: string): Table => {
    const table = tables.get(name)
    if (table === undefined) throw new Error(`there is no table ${name}`)
    return table
  }
  return {
    names: [...tables.keys()],
    async *rows(name) {
      const digest = createDigest()
      for await (const rows of ahead(readRows(tx, find(name)))) {
        for (const row of rows) if (!isPiece(row)) digest.add(hash('sha256', row))
        yield rows
      }
      digests.set(name, digest.result())
    },
    async contents(name) {
      const table = find(name)
      const digest = digests.get(name) ?? (await digestOf(tx, table))
      return { name, ...digest, next_id: await nextId(tx, table) }
    },
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

/** Opens a verified backup as a source. Tables must be read in the backup's order, each once. */
export function openBackupSource(path: string, { tables }: Contents): Source {
  const lines = linesOf(path)
  /** A line that was read but not used yet. */
  let held: string | undefined
  const find = (name: string): TableContents => {
    const table = tables.find((one) => one.name === name)
    if (table === undefined) throw new Error(`the backup has no table ${name}`)
    return table
  }
  return {
    names: tables.map(({ name }) => name),
    async *rows(name) {
      let left = find(name).rows
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
    },
    contents: (name) => Promise.resolve(find(name)),
  }
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
    if (length > MAX_LINE_BYTES)
      throw new Error('the backup has a row that none is: it is too long')
  }
  return undefined
}
