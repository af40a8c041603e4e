import { hash } from 'node:crypto'
import type { Transaction } from '../client.ts'
import { createDigest, type Digest } from './digest.ts'
import { isPiece } from './large-values.ts'
import type { Source } from './load.ts'
import { digestOf, holdMoment, nextId, readRows, speakText } from './rows.ts'
import { listTables, type Table } from './tables.ts'

/** Opens the database of a transaction as a source: all of it as it is at this moment. It must come first. */
export async function openDatabaseSource(tx: Transaction): Promise<Source> {
  await holdMoment(tx)
  await speakText(tx)
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
    async carried(name) {
      const table = find(name)
      const digest = digests.get(name) ?? (await digestOf(tx, table))
      return { name, ...digest, next_id: await nextId(tx, table) }
    },
  }
}

/** Has the next piece read while one is worked on. */
async function* ahead<T>(pieces: AsyncGenerator<T>): AsyncGenerator<T> {
  let next = pieces.next()
  for (;;) {
    const { value, done } = await next
    if (done === true) return
    next = pieces.next()
    // Whoever takes the pieces may stop at a failure of its own.
    next.catch(() => undefined)
    yield value
  }
}
