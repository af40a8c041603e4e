import { badRequest } from '../../../../kernel/fault.ts'
import { trimBoth } from '../../../../kernel/text.ts'
import { INSTANT_FORM, readInstant } from '../../../../kernel/time.ts'

/** The formats of files with links: golink's JSON lines, or CSV. */
export const FORMATS = ['jsonl', 'csv'] as const
export type Format = (typeof FORMATS)[number]

/** The part of an imported file that describes one link, or a header. */
interface ImportRecord {
  line: number
  format: Format | undefined
  text: string
  /** Why it cannot be read. */
  problem?: string
}

/** What a line of a file says of a link; the fields are not checked yet. */
export interface LinkData {
  /**
   * Fields by their names in the API. Those that the line does not have are undefined: they stay.
   */
  fields: Readonly<Record<string, unknown>>
  /** E-mail address of the primary owner; empty when the line names none. */
  owner: string
  coOwners: readonly string[]
  sharedWith: readonly string[]
  created_at: Date | undefined
  updated_at: Date | undefined
  /** What the report says beside the outcome, such as a slug that had to be changed. */
  note: string
}

/** A record; its slug may be empty. `read` throws a Fault if the record cannot be read. */
export interface LinkRecord {
  slug: string
  /** Its name in the other program, which may tell names apart that are one slug here. */
  name?: string
  read: (now: Date) => LinkData
}

/** A line of a file. */
export interface ImportLine extends LinkRecord {
  line: number
}

/** A longer name is not a slug, whatever is cut off its ends. */
const MAX_NAME_LENGTH = 1_000

/** Times before this are unknown: golink writes the year 1 for them. */
const EARLIEST = Date.UTC(1970, 0, 1)

/**
 * Links are far smaller. Larger records come from files of another kind, or from an open quote.
 */
const MAX_RECORD_BYTES = 1024 * 1024
const LF = 0x0a
const QUOTE = 0x22
const COMMA = 0x2c
const BRACE = 0x7b
/** Skipped before the first character: white space and a byte order mark. */
const IGNORED = Buffer.from('\ufeff \t\r\n')

/**
 * Where in a CSV record a byte stands; `closing`: after a quote that ends the cell unless another
 * follows.
 */
type Place = 'start' | 'plain' | 'quoted' | 'closing'

/**
 * The slug that visits by a name of another program find: golink, Shlink and kutt also take upper
 * case, `_` and `.`, and dashes at the ends.
 */
export function slugOfName(name: string): string {
  const slug = name.toLowerCase().replaceAll(/[._]/g, '-')
  return slug.length > MAX_NAME_LENGTH ? slug : trimBoth(slug, /-/)
}

/** Reads a time with its zone; undefined when the file does not know it. */
export function readImportTime(name: string, text: string): Date | undefined {
  if (text === '') return undefined
  const time = readInstant(text)
  if (time === undefined) throw badRequest(`${name} must be ${INSTANT_FORM}`)
  return time.getTime() < EARLIEST ? undefined : time
}

/**
 * Splits bytes into records as they come, holding one at a time. Without a format, the first
 * character tells: `{` begins golink's JSON lines, everything else is CSV. A record ends at a line
 * end; in CSV, not within a quoted cell (RFC 4180). Blank lines are counted and left out. Reading
 * ends at a quoted cell that is never closed, because nothing after it can be trusted.
 */
export async function* readRecords(
  chunks: AsyncIterable<Uint8Array>,
  given: Format | undefined,
): AsyncGenerator<ImportRecord> {
  let format = given
  let place: Place = 'start'
  let pieces: Uint8Array[] = []
  let size = 0
  let line = 1
  let first = 1

  function take(piece: Uint8Array): void {
    size += piece.length
    // Only the length of a record that is too long is kept.
    pieces = size > MAX_RECORD_BYTES ? [] : [...pieces, piece]
  }
  function finish(): ImportRecord {
    const read =
      size > MAX_RECORD_BYTES
        ? { text: '', problem: 'is longer than 1 MiB' }
        : decode(first, Buffer.concat(pieces))
    const record = { line: first, format, ...read }
    pieces = []
    size = 0
    place = 'start'
    first = line + 1
    return record
  }

  for await (const chunk of chunks) {
    let from = 0
    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at] ?? 0
      if (format === undefined && !IGNORED.includes(byte)) {
        format = byte === BRACE ? 'jsonl' : 'csv'
      }
      if (byte === LF && place !== 'quoted') {
        take(chunk.subarray(from, at))
        from = at + 1
        const record = finish()
        if (!isBlank(record)) yield record
      } else if (format === 'csv') place = placeAfter(place, byte)
      if (byte === LF) line += 1
    }
    take(chunk.subarray(from))
    if (place === 'quoted' && size > MAX_RECORD_BYTES) break
  }
  if (place === 'quoted') {
    const problem = 'a quoted field is never closed; nothing after it was read'
    yield { line: first, format, text: '', problem }
    return
  }
  const last = finish()
  if (!isBlank(last)) yield last
}

function placeAfter(place: Place, byte: number): Place {
  if (place === 'quoted') return byte === QUOTE ? 'closing' : 'quoted'
  if (byte === COMMA) return 'start'
  return byte === QUOTE && place !== 'plain' ? 'quoted' : 'plain'
}

function decode(line: number, bytes: Buffer): Pick<ImportRecord, 'text' | 'problem'> {
  try {
    // A byte order mark is removed at the start of the file only.
    const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: line > 1 })
    return { text: decoder.decode(bytes).replace(/\r$/, '') }
  } catch {
    return { text: '', problem: 'is not UTF-8' }
  }
}

function isBlank({ text, problem }: ImportRecord): boolean {
  return problem === undefined && text.trim() === ''
}
