import type { Database } from '../../../db/client.ts'
import { transferQueries, type ExportedLink } from '../../../db/links/transfer.ts'
import { badRequest } from '../../../kernel/fault.ts'
import { CSV_HEADER, readCsvLink, readHeader, writeCsvLink, type Column } from './csv.ts'
import { readGolink, writeGolink } from './golink.ts'
import { readLine, readRecords, type ImportLine } from './records.ts'

/** The formats of files with links: golink's JSON lines, or CSV. */
export const FORMATS = ['jsonl', 'csv'] as const
export type Format = (typeof FORMATS)[number]

const PAGE_SIZE = 500

/** A part of an export: its lines, and what is left out of it. */
export interface ExportPart {
  readonly lines: readonly string[]
  /** Slugs of links that the format cannot hold. */
  readonly left: readonly string[]
  /** The number of private and secure links that are left out. */
  readonly hidden: number
}

/**
 * Reads links from a stream of bytes. Without a format, the first character of the file tells: `{`
 * begins golink's JSON lines, everything else is CSV. Throws the Fault of a bad header.
 */
export async function* readLinks(
  bytes: AsyncIterable<Uint8Array>,
  given: Format | undefined,
): AsyncGenerator<ImportLine> {
  const { first, chunks } = await peek(bytes)
  const format = given ?? (first === '{' ? 'jsonl' : 'csv')
  let columns: readonly Column[] | undefined
  for await (const record of readRecords(chunks, format === 'csv')) {
    if (format === 'csv' && columns === undefined) {
      if ('problem' in record) throw badRequest(`The first line ${record.problem}`)
      columns = readHeader(record.text)
    } else if ('problem' in record) yield { ...record, slug: '' }
    else {
      const { line, text } = record
      yield readLine(line, () => (columns ? readCsvLink(text, columns) : readGolink(text)))
    }
  }
}

/** All links by slug, or only the public ones, page by page, as text that an import takes. */
export async function* exportLinks(
  db: Database,
  format: Format,
  publicOnly: boolean,
): AsyncGenerator<ExportPart> {
  if (format === 'csv') yield { lines: [CSV_HEADER], left: [], hidden: 0 }
  const write = format === 'csv' ? writeCsvLink : writeGolink
  let after: string | undefined = ''
  while (after !== undefined) {
    const page = { after, limit: PAGE_SIZE }
    const links: readonly ExportedLink[] = await transferQueries.listLinksToExport(db, page)
    const shown = links.filter(({ visibility }) => !publicOnly || visibility === 'public')
    const written = shown.map((link) => ({ slug: link.slug, line: write(link) }))
    yield {
      lines: written.map(({ line }) => line).filter((line) => line !== undefined),
      left: written.filter(({ line }) => line === undefined).map(({ slug }) => slug),
      hidden: links.length - shown.length,
    }
    after = links.length < PAGE_SIZE ? undefined : links.at(-1)?.slug
  }
}

/** The first character that is neither a space nor a byte order mark, and all bytes again. */
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
    const text = Buffer.from(value).toString('latin1')
    first = text
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
