import { readGolink } from './golink.ts'
import { readCsvLink, readHeader } from './import-csv.ts'
import type { ImportLine } from './import-line.ts'
import { readRecords } from './import-records.ts'

/** What files links are read from and written to: golink's JSON lines, or CSV. */
export const FORMATS = ['jsonl', 'csv'] as const
export type Format = (typeof FORMATS)[number]

/** A file that can't be read as what it is said to be. The message is for people. */
export class UnreadableFile extends Error {
  override name = 'UnreadableFile'
}

/**
 * Reads links from a stream of bytes, as they come. Without a format, the file's first character tells:
 * `{` begins golink's JSON lines, everything else is CSV. Throws `UnreadableFile` for a bad header.
 */
export async function* readLinks(
  bytes: AsyncIterable<Uint8Array>,
  given: Format | undefined,
): AsyncGenerator<ImportLine> {
  const { first, chunks } = await peek(bytes)
  const format = given ?? (first === '{' ? 'jsonl' : 'csv')
  let columns: ReturnType<typeof readHeader> | undefined
  for await (const record of readRecords(chunks, format === 'csv')) {
    const { line } = record
    if (format === 'csv' && columns === undefined) {
      columns = 'text' in record ? readHeader(record.text) : `The first line ${record.problem}`
      if (typeof columns === 'string') throw new UnreadableFile(columns)
    } else if ('problem' in record) yield { line, slug: '', problem: record.problem }
    else if (typeof columns === 'object') yield readCsvLink(line, record.text, columns)
    else yield readGolink(line, record.text)
  }
}

/** The first character that is no space or byte order mark, and all bytes again. */
async function peek(
  bytes: AsyncIterable<Uint8Array>,
): Promise<{ readonly first: string; readonly chunks: AsyncIterable<Uint8Array> }> {
  const iterator = bytes[Symbol.asyncIterator]()
  const head: Uint8Array[] = []
  let first = ''
  while (first === '') {
    const { value, done } = await iterator.next()
    if (done === true) break
    head.push(value)
    first = Buffer.from(value)
      .toString('latin1')
      .replace(/^\xef\xbb\xbf/, '')
      .trimStart()
      .slice(0, 1)
  }
  async function* all(): AsyncGenerator<Uint8Array> {
    yield* head
    yield* { [Symbol.asyncIterator]: () => iterator }
  }
  return { first, chunks: all() }
}
