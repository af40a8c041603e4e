import { badRequest, Fault } from '../../../kernel/fault.ts'
import { INSTANT_FORM, readInstant } from '../../../kernel/time.ts'

/** The part of an imported file that describes one link: its text, or why it cannot be read. */
export type ImportRecord =
  | { readonly line: number; readonly text: string }
  | { readonly line: number; readonly problem: string }

/** What a line of a file says of a link; the fields are not checked yet. */
interface LinkData {
  /**
   * Fields by their names in the API. Those that the line does not have are undefined: they stay.
   */
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

/** A record's slug, and how the rest is read; throws the Fault of what cannot be read. */
export interface LinkRecord {
  readonly slug: string
  readonly read: () => LinkData
}

export interface ImportedLink extends LinkData {
  readonly line: number
  readonly slug: string
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

/**
 * Where in a CSV record a byte stands; `closing`: after a quote that ends the cell unless another
 * follows.
 */
type Place = 'start' | 'plain' | 'quoted' | 'closing'

/** Reads a time with its zone; undefined when the file does not know it. */
export function readImportTime(name: string, text: string): Date | undefined {
  if (text === '') return undefined
  const time = readInstant(text)
  if (time === undefined) throw badRequest(`${name} must be ${INSTANT_FORM}`)
  return time.getTime() < EARLIEST ? undefined : time
}

/** Reads a line by its format. */
export function readLine(line: number, parse: () => LinkRecord): ImportLine {
  let slug = ''
  try {
    const record = parse()
    slug = record.slug
    return { line, slug, ...record.read() }
  } catch (error) {
    if (error instanceof Fault) return { line, slug, problem: error.message }
    throw error
  }
}

/**
 * Splits bytes into records as they come, holding one at a time. A record ends at a line end; with
 * `quotes`, not within a quoted cell (RFC 4180). Blank lines are counted and left out. Reading ends
 * at a quoted cell that is never closed, because nothing after it can be trusted.
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
