import type { Database } from '../../../../db/client.ts'
import { transferQueries, type ExportedLink } from '../../../../db/links/transfer/transfer.ts'
import { badRequest } from '../../../../kernel/fault.ts'
import { isObject, parseJson } from '../../../../kernel/json.ts'
import { columnsOf, recognize, type ColumnReport } from './columns.ts'
import { CSV_HEADER, writeCsvLink } from './csv-export.ts'
import { readCsv, separatorOf } from './csv.ts'
import { writeGolink } from './golink.ts'
import { isAnswer, readAnswers } from './json-answers.ts'
import { readJsonLines } from './json-lines.ts'
import { openText } from './open-text.ts'
import { readForeignLink, readOwnLink } from './read-link.ts'
import type { Format, ImportLine } from './records.ts'
import { MAX_COLUMNS, type Row } from './rows.ts'
import { GATEHOUSE, type Source } from './sources.ts'

/** A file of links, and what it turned out to be while it was read. */
interface LinkFile {
  lines: AsyncGenerator<ImportLine>
  /** The program that it is from; undefined before its first link. */
  source: string | undefined
  /** What becomes of its columns. */
  columns: readonly ColumnReport[]
}

const PAGE_SIZE = 500

/**
 * Reads links from bytes as they come. The first characters tell CSV from JSON, and the columns
 * tell which program the file is from. The lines throw the Fault of a file that has no links.
 */
export function readLinks(chunks: AsyncIterable<Uint8Array>): LinkFile {
  const file: LinkFile = { lines: read(), source: undefined, columns: [] }
  const seen = new Set<string>()

  /** Notes names that were not seen before: objects may have other members than the first one. */
  function noteColumns(source: Source, row: Row): void {
    const columns = row.columns.filter((name) => !seen.has(name) && seen.size < MAX_COLUMNS)
    if (columns.length === 0) return
    for (const name of columns) seen.add(name)
    file.columns = [...file.columns, ...columnsOf(source, { ...row, columns })]
  }
  async function* read(): AsyncGenerator<ImportLine> {
    const { rows, isCsv } = await rowsOf(chunks)
    let source: Source | undefined
    for await (const row of rows) {
      const isFirst = source === undefined && row.columns.length > 0
      if (isFirst) source = recognize(row, isCsv)
      file.source = source?.name
      if (source !== undefined) noteColumns(source, row)
      // The first row of CSV is its header.
      if (!(isFirst && isCsv)) yield linkOf(source, row)
    }
    if (isCsv && source === undefined) {
      throw badRequest('The file is empty: it has no header and no links')
    }
  }
  return file
}

function linkOf(source: Source | undefined, row: Row): ImportLine {
  const { line, problem = 'is no link' } = row
  if (source === GATEHOUSE) return readOwnLink(source, row)
  if (source !== undefined) return readForeignLink(source, row)
  const read = (): never => {
    throw badRequest(problem)
  }
  return { line, slug: '', read }
}

async function rowsOf(chunks: AsyncIterable<Uint8Array>) {
  const { head, bytes } = await openText(chunks)
  const isCsv = !/^\s*[{[]/.test(head)
  if (isCsv) return { isCsv, rows: readCsv(bytes, separatorOf(head)) }
  const [first = ''] = head.trimStart().split('\n', 1)
  const isLines = isObject(parseJson(first)) && !isAnswer(first)
  return { isCsv, rows: isLines ? readJsonLines(bytes) : readAnswers(bytes) }
}

/** A line of an exported file, or why the format cannot hold the link. */
type ExportLine = { line: string } | { slug: string; problem: string }

/**
 * All links by slug, or only the public ones, page by page, as text that an import takes; not CSV
 * for spreadsheets, where cells that would be formulas have a sign in front.
 */
export async function* exportLinks(
  db: Database,
  format: Format,
  publicOnly: boolean,
  forSpreadsheets = false,
): AsyncGenerator<readonly ExportLine[]> {
  if (format === 'csv') yield [{ line: CSV_HEADER }]
  const write = (link: ExportedLink): ExportLine =>
    format === 'csv'
      ? { line: writeCsvLink(link, forSpreadsheets) }
      : { slug: link.slug, ...writeGolink(link) }
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
