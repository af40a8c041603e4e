import { createReadStream } from 'node:fs'
import { pipeline } from 'node:stream'
import { createZstdDecompress } from 'node:zlib'
import { HEAD, type Contents } from './backup-file.ts'
import { isPiece } from './large-values.ts'
import type { Carried, Source } from './load.ts'

/** Rows that are given on together: about a megabyte of text, or one that is longer. */
const BYTES = 1024 * 1024
/** No row is as long. What is compressed may stand for any number of bytes, and a line is held whole. */
const LONGEST = 128 * 1024 * 1024

/** Opens the rows of a verified backup. They have to be asked for in its own order of tables, once. */
export function openBackupSource(path: string, { tables }: Contents): Source {
  const lines = linesOf(path)
  /** The next line, where it was looked at. */
  let held: string | undefined
  const find = (name: string): Carried => {
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
        if (rows.length > 0 && (piece || length > BYTES || left === 0)) {
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
    carried: (name) => Promise.resolve(find(name)),
  }
}

async function* linesOf(path: string): AsyncGenerator<string, undefined> {
  const text = createZstdDecompress()
  // A failure of the file ends the text with it.
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
    if (length > LONGEST) throw new Error('the backup has a row that none is: it is too long')
  }
  return undefined
}
