import type { Database } from '../../../db/client.ts'
import { transferQueries, type ExportedLink } from '../../../db/links/transfer.ts'
import { badRequest } from '../../../kernel/fault.ts'
import { CSV_HEADER, readCsvLink, readHeader, writeCsvLink, type Column } from './csv.ts'
import { readGolink, writeGolink } from './golink.ts'
import { readRecords, type Format, type ImportLine } from './records.ts'

const PAGE_SIZE = 500

/**
 * Reads links from a stream of bytes, whose first character tells the format unless it is given.
 * Throws the Fault of a bad header.
 */
export async function* readLinks(
  bytes: AsyncIterable<Uint8Array>,
  given: Format | undefined,
): AsyncGenerator<ImportLine> {
  let columns: readonly Column[] | undefined
  for await (const { line, format, text, problem } of readRecords(bytes, given)) {
    if (format !== 'jsonl' && columns === undefined) {
      if (problem !== undefined) throw badRequest(`The first line ${problem}`)
      columns = readHeader(text)
    } else if (problem !== undefined) {
      const read = (): never => {
        throw badRequest(problem)
      }
      yield { line, slug: '', read }
    } else yield { line, ...(columns ? readCsvLink(text, columns) : readGolink(text)) }
  }
}

/** A line of an exported file, or why the format cannot hold the link. */
type ExportLine = { line: string } | { slug: string; problem: string }

/** All links by slug, or only the public ones, page by page, as text that an import takes. */
export async function* exportLinks(
  db: Database,
  format: Format,
  publicOnly: boolean,
): AsyncGenerator<readonly ExportLine[]> {
  if (format === 'csv') yield [{ line: CSV_HEADER }]
  const write = (link: ExportedLink): ExportLine =>
    format === 'csv' ? { line: writeCsvLink(link) } : { slug: link.slug, ...writeGolink(link) }
  const page = { public_only: publicOnly, limit: PAGE_SIZE }
  let after = ''
  for (;;) {
    const links = await transferQueries.listLinksToExport(db, { ...page, after })
    yield links.map(write)
    const last = links[PAGE_SIZE - 1]
    if (last === undefined) return
    after = last.slug
  }
}
