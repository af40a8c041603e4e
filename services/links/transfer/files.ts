import type { Database } from '../../../db/client.ts'
import { transferQueries, type ExportedLink } from '../../../db/links/transfer.ts'
import { badRequest } from '../../../kernel/fault.ts'
import { CSV_HEADER, readCsvLink, readHeader, writeCsvLink, type Column } from './csv.ts'
import { readGolink, writeGolink } from './golink.ts'
import { readInstant } from '../../../kernel/time.ts'

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
 * Reads links from a stream of bytes. Without a format, the first character of the file tells: `{` begins
 * golink's JSON lines, everything else is CSV. Throws the Fault of a bad header.
 */
export async function* readLinks(
  bytes: AsyncIterable<Uint8Array>,
  given: Format | undefined,
): AsyncGenerator<ImportLine> {
  const { first, chunks } = await peek(bytes)
  const format = given ?? (first === '{' ? 'jsonl' : 'csv')
  let columns: readonly Column[] | undefined
  for await (const record of readRecords(chunks, format === 'csv')) {
    const { line } = record
    if (format === 'csv' && columns === undefined) {
      const header = 'text' in record ? readHeader(record.text) : `The first line ${record.problem}`
      if (typeof header === 'string') throw badRequest(header)
      columns = header
    } else if ('problem' in record) yield { line, slug: '', problem: record.problem }
    else if (columns !== undefined) yield readCsvLink(line, record.text, columns)
    else yield readGolink(line, record.text)
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

/** The part of an imported file that describes one link: its text, or why it cannot be read. */
export type ImportRecord =
  | { readonly line: number; readonly text: string }
  | { readonly line: number; readonly problem: string }

/** A link as a line of a file has it; its fields are not checked yet. */
export interface ImportedLink {
  readonly line: number
  readonly slug: string
  /** Fields by their names in the API. Fields that the line does not have stay as they are. */
  readonly fields: Readonly<Record<string, unknown>>
  /** E-mail address of the primary owner; empty when the line names none. */
  readonly owner: string
  readonly coOwners: readonly string[]
  readonly sharedWith: readonly string[]
  readonly created_at: Date | undefined
  readonly updated_at: Date | undefined
  /** What the report says beside the outcome, such as a slug that had to be changed. */
  readonly note: string
}

/** A line of a file: a link, or why it cannot be read, with its slug as far as it is known. */
export type ImportLine =
  | ImportedLink
  | { readonly line: number; readonly slug: string; readonly problem: string }

/** Times before this are unknown: golink writes the year 1 for them. */
const EARLIEST = Date.UTC(1970, 0, 1)

/** Links are far smaller. Larger records come from files of another kind, or from an open quote. */
const MAX_RECORD_BYTES = 1024 * 1024
const [LF, QUOTE, COMMA] = [0x0a, 0x22, 0x2c]

/** Where in a CSV record a byte stands; `closing`: after a quote that ends the cell unless another follows. */
type Place = 'start' | 'plain' | 'quoted' | 'closing'

/** Reads a time with its zone. Undefined: the file does not know it; `bad`: the text is not a time. */
export function readImportTime(text: string): Date | undefined | 'bad' {
  if (text === '') return undefined
  const time = readInstant(text)
  if (time === undefined) return 'bad'
  return time.getTime() < EARLIEST ? undefined : time
}

/**
 * Splits bytes into records as they come, holding one at a time. A record ends at a line end; with
 * `quotes`, not within a quoted cell (RFC 4180). Blank lines are counted and left out. Reading ends at a
 * quoted cell that is never closed, because nothing after it can be trusted.
 */
export async function* readRecords(
  chunks: AsyncIterable<Uint8Array>,
  quotes: boolean,
): AsyncGenerator<ImportRecord> {
  let place: Place = 'start'
  let pieces: Uint8Array[] = []
  let [size, line, first] = [0, 1, 1]

  function take(piece: Uint8Array): void {
    size += piece.length
    // Only the length of a record that is too long is kept.
    pieces = size > MAX_RECORD_BYTES ? [] : [...pieces, piece]
  }
  function finish(): ImportRecord {
    const record =
      size > MAX_RECORD_BYTES
        ? { line: first, problem: 'is longer than 1 MiB' }
        : decode(first, Buffer.concat(pieces))
    ;[pieces, size, place, first] = [[], 0, 'start', line + 1]
    return record
  }

  for await (const chunk of chunks) {
    let from = 0
    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at]
      if (byte === LF && place !== 'quoted') {
        take(chunk.subarray(from, at))
        from = at + 1
        const record = finish()
        if (!isBlank(record)) yield record
      } else if (quotes) place = placeAfter(place, byte)
      if (byte === LF) line += 1
    }
    take(chunk.subarray(from))
    if (place === 'quoted' && size > MAX_RECORD_BYTES) break
  }
  if (place === 'quoted') {
    yield { line: first, problem: 'a quoted field is never closed; nothing after it was read' }
    return
  }
  const last = finish()
  if (!isBlank(last)) yield last
}

function placeAfter(place: Place, byte: number | undefined): Place {
  if (place === 'quoted') return byte === QUOTE ? 'closing' : 'quoted'
  if (byte === COMMA) return 'start'
  return byte === QUOTE && place !== 'plain' ? 'quoted' : 'plain'
}

function decode(line: number, bytes: Buffer): ImportRecord {
  try {
    // A byte order mark is removed at the start of the file only.
    const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: line > 1 })
    return { line, text: decoder.decode(bytes).replace(/\r$/, '') }
  } catch {
    return { line, problem: 'is not UTF-8' }
  }
}

function isBlank(record: ImportRecord): boolean {
  return 'text' in record && record.text.trim() === ''
}
