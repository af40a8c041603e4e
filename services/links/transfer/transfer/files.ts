import type { Database } from '../../../../db/client.ts'
import { transferQueries, type ExportedLink } from '../../../../db/links/transfer/transfer.ts'
import { badRequest } from '../../../../kernel/fault.ts'
import { APIS, readAnswers, type ApiName } from './answers.ts'
import { CSV_HEADER, readCells, readCsvLink, readHeader, writeCsvLink } from './csv.ts'
import { readGolink, writeGolink } from './golink.ts'
import { FORMATS, readRecords, type Format, type ImportLine, type LinkRecord } from './records.ts'
import { isShlinkHeader, readShlinkCsv } from './shlink.ts'

/** What an import reads: the formats of exports, and the answers of other programs' APIs. */
export const IMPORT_FORMATS = [...FORMATS, ...APIS] as const
export type ImportFormat = (typeof IMPORT_FORMATS)[number]

const PAGE_SIZE = 500

/**
 * Reads links from a stream of bytes, whose first character tells the format unless it is given.
 * Throws the Fault of a bad header.
 */
export async function* readLinks(
  bytes: AsyncIterable<Uint8Array>,
  given: ImportFormat | undefined,
): AsyncGenerator<ImportLine> {
  if (isApi(given)) {
    yield* readAnswers(bytes, given)
    return
  }
  let readCsv: ((text: string) => LinkRecord) | undefined
  for await (const { line, format, text, problem } of readRecords(bytes, given)) {
    if (format !== 'jsonl' && readCsv === undefined) {
      if (problem !== undefined) throw badRequest(`The first line ${problem}`)
      readCsv = csvReader(text)
    } else if (problem !== undefined) {
      const read = (): never => {
        throw badRequest(problem)
      }
      yield { line, slug: '', read }
    } else yield { line, ...(readCsv ? readCsv(text) : readGolink(text)) }
  }
}

function isApi(format: ImportFormat | undefined): format is ApiName {
  return APIS.some((name) => name === format)
}

/** Reads the records below a header: ours, or that of Shlink's web client. */
function csvReader(header: string): (text: string) => LinkRecord {
  const cells = readCells(header) ?? []
  if (isShlinkHeader(cells)) return (text) => readShlinkCsv(text, cells)
  const columns = readHeader(header)
  return (text) => readCsvLink(text, columns)
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
