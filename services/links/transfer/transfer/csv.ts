import { once } from 'node:events'
import { CsvError, parse } from 'csv-parse'
import { badRequest } from '../../../../kernel/fault.ts'
import {
  MAX_COLUMNS,
  MAX_ROW_BYTES,
  repeatedColumn,
  rowsBelow,
  unreadable,
  type Row,
} from './rows.ts'

/** The separators of cells that are recognised. */
const SEPARATORS = [',', ';', '\t'] as const
type Separator = (typeof SEPARATORS)[number]

/** A line of cells, with the line of the file that it begins in. */
interface Line {
  line: number
  cells: readonly string[]
}

/** What the parser gives for a line with the option `raw`; its types have the cells only. */
interface RawRecord {
  record: readonly string[]
  raw: string
}

/** What the parser writes for bytes that are not UTF-8. */
const NO_CHARACTER = '\ufffd'

/** The separator that the first line has most of, outside of quotes. */
export function separatorOf(head: string): Separator {
  const [first = ''] = head.replaceAll(/"[^"]*(?:"|$)/g, '').split(/[\r\n]/, 1)
  const counts = SEPARATORS.map((separator) => first.split(separator).length)
  return SEPARATORS[counts.indexOf(Math.max(...counts))] ?? ','
}

/** Reads a header as the first row, and the links below it. Throws the Fault of a wrong header. */
export async function* readCsv(
  bytes: AsyncIterable<Uint8Array>,
  separator: Separator,
): AsyncGenerator<Row> {
  let toRow: ReturnType<typeof rowsBelow> | undefined
  for await (const found of readLines(bytes, separator)) {
    if ('problem' in found) {
      if (toRow === undefined) throw badRequest(`The first line ${found.problem}`)
      yield unreadable(found.line, found.problem)
    } else if (toRow === undefined) {
      const columns = readHeader(found.cells)
      toRow = rowsBelow(columns)
      yield toRow(found.line, columns)
    } else if (found.cells.some((cell) => cell.includes(NO_CHARACTER))) {
      yield unreadable(found.line, 'is not UTF-8')
    } else yield toRow(found.line, found.cells)
  }
}

function readHeader(cells: readonly string[]): readonly string[] {
  const columns = cells.map((cell) => cell.trim())
  if (columns.some((column) => /[\0\ufffd]/.test(column))) {
    throw badRequest('The first line is not UTF-8')
  }
  if (columns.length > MAX_COLUMNS) {
    throw badRequest(`The header has ${columns.length} columns; ${MAX_COLUMNS} at most`)
  }
  const repeated = repeatedColumn(columns)
  if (repeated !== undefined) throw badRequest(`The header has the column ${repeated} twice`)
  return columns
}

/**
 * Splits bytes into lines of cells as they come. Quotes may be anywhere in a cell, as spreadsheets
 * and people write them; one that opens a cell lasts to the next one, over line ends. Lines without
 * a text are left out. Reading ends at a quote that is never closed and at a line that is too long,
 * because nothing after it can be trusted.
 */
async function* readLines(
  bytes: AsyncIterable<Uint8Array>,
  delimiter: Separator,
): AsyncGenerator<Line | { line: number; problem: string }> {
  const ready: Line[] = []
  let line = 1
  const parser = parse({
    delimiter,
    bom: true,
    // A file may mix them.
    record_delimiter: ['\r\n', '\n', '\r'],
    relax_quotes: true,
    relax_column_count: true,
    max_record_size: MAX_ROW_BYTES,
    // The text of the line, whose line ends are counted.
    raw: true,
    on_record(found: unknown) {
      const { record: cells, raw } = found as RawRecord
      if (cells.some((cell) => cell.trim() !== '')) ready.push({ line, cells })
      line += raw.match(/\r\n|\r|\n/g)?.length ?? 0
      return null
    },
  })
  let failure: Error | undefined
  parser.on('error', (error) => (failure = error))
  const done = once(parser, 'close').catch(() => undefined)
  for await (const chunk of bytes) {
    await new Promise<void>((resolve) => parser.write(chunk, () => resolve()))
    yield* ready.splice(0)
    if (failure !== undefined) break
  }
  parser.end()
  // It has nothing to read: `on_record` keeps every line.
  parser.resume()
  await done
  yield* ready
  if (failure !== undefined) yield { line, problem: problemOf(failure) }
}

function problemOf(error: Error): string {
  if (!(error instanceof CsvError)) throw error
  const end = 'nothing after it was read'
  if (error.code === 'CSV_MAX_RECORD_SIZE') return `is longer than 1 MiB; ${end}`
  if (error.code === 'CSV_QUOTE_NOT_CLOSED') return `a quoted field is never closed; ${end}`
  return `is not CSV; ${end}`
}
