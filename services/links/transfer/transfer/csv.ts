import type { ExportedLink } from '../../../../db/links/transfer/transfer.ts'
import { badRequest } from '../../../../kernel/fault.ts'
import { partsOf } from '../../names/links/input.ts'
import { readImportTime, type LinkRecord } from './records.ts'

/** The columns of a CSV file; an imported file may have them in any order, and only some. */
const COLUMNS = [
  'slug',
  'url',
  'title',
  'description',
  'tags',
  'owner',
  'visibility',
  'append_path',
  'expires_at',
  'max_visits',
  'archived',
  'created_at',
  'updated_at',
  'co_owners',
  'shared_with',
  'aliases',
] as const

export type Column = (typeof COLUMNS)[number]

/** Separates tags and addresses; tags may have spaces in them. */
const SEPARATOR = /[;,]/

/** A cell with what ends it: in quotes, where `""` is a quote, or plain. */
const CELL = /(?:"([^"]*(?:""[^"]*)*)"|(?!")([^,]*))(,|$)/gy

/** The header of an exported file. */
export const CSV_HEADER = writeCells(COLUMNS)

/** The columns that a header names. Throws the Fault of a wrong header. */
export function readHeader(record: string): readonly Column[] {
  const columns: Column[] = []
  for (const cell of readCells(record) ?? []) {
    const column = COLUMNS.find((known) => known === cell.trim().toLowerCase())
    if (column === undefined) {
      const form = 'a header of column names separated by commas'
      throw badRequest(`The first line must be ${form}: ${COLUMNS.join(', ')}`)
    }
    if (columns.includes(column)) throw badRequest(`The header has the column ${column} twice`)
    columns.push(column)
  }
  const missing = (['slug', 'url'] as const).find((name) => !columns.includes(name))
  if (missing !== undefined) throw badRequest(`The header must have the column ${missing}`)
  return columns
}

/**
 * Reads a record below a header. An empty cell clears a text; elsewhere it leaves the field as it
 * is.
 */
export function readCsvLink(text: string, columns: readonly Column[]): LinkRecord {
  const cells = readCells(text)
  const cell = (name: Column): string | undefined => cells?.[columns.indexOf(name)]
  const word = (name: Column): string => cell(name)?.trim() ?? ''
  return {
    slug: word('slug'),
    read() {
      checkCells(cells, columns)
      const tags = cell('tags')
      const aliases = cell('aliases')
      const maxVisits = word('max_visits')
      return {
        fields: {
          url: word('url'),
          title: cell('title'),
          description: cell('description'),
          tags: tags === undefined ? undefined : partsOf(tags, SEPARATOR),
          visibility: word('visibility').toLowerCase() || undefined,
          append_path: readBoolean(word('append_path')),
          expires_at: word('expires_at') || undefined,
          max_visits: /^\d{1,15}$/.test(maxVisits) ? Number(maxVisits) : maxVisits || undefined,
          archived: readBoolean(word('archived')),
          aliases: aliases === undefined ? undefined : partsOf(aliases, SEPARATOR),
        },
        owner: word('owner'),
        coOwners: partsOf(word('co_owners'), SEPARATOR),
        sharedWith: partsOf(word('shared_with'), SEPARATOR),
        created_at: readImportTime('created_at', word('created_at')),
        updated_at: readImportTime('updated_at', word('updated_at')),
        note: '',
      }
    },
  }
}

/** Throws the Fault of a record that is not one below its header. */
export function checkCells(
  cells: readonly string[] | undefined,
  columns: readonly string[],
): asserts cells {
  if (cells === undefined) {
    throw badRequest('a quoted field is followed by something else than a comma')
  }
  if (cells.length !== columns.length) {
    throw badRequest(`has ${cells.length} fields, the header has ${columns.length}`)
  }
}

/** A link as a record below `CSV_HEADER`. */
export function writeCsvLink(link: ExportedLink): string {
  const { owners, tags, append_path, created_at, updated_at, shared_with, ...others } = link
  const { expires_at, max_visits, archived, aliases, ...texts } = others
  const co_owners = owners.filter(({ is_primary }) => !is_primary).map(({ email }) => email)
  const cells: Readonly<Record<Column, string>> = {
    ...texts,
    tags: tags.join(';'),
    owner: owners.find(({ is_primary }) => is_primary)?.email ?? '',
    append_path: String(append_path),
    expires_at: expires_at?.toISOString() ?? '',
    max_visits: String(max_visits ?? ''),
    archived: String(archived),
    created_at: created_at.toISOString(),
    updated_at: updated_at.toISOString(),
    co_owners: co_owners.join(';'),
    shared_with: shared_with.join(';'),
    aliases: aliases.join(';'),
  }
  return writeCells(COLUMNS.map((column) => cells[column]))
}

/** Other words stay, to be refused with the fields; undefined for none. */
function readBoolean(text: string): boolean | string | undefined {
  const word = text.toLowerCase()
  if (word === '') return undefined
  return word === 'true' || word === 'false' ? word === 'true' : word
}

/**
 * The cells of a record (RFC 4180); undefined when something other than a comma follows a quoted
 * cell.
 */
export function readCells(record: string): readonly string[] | undefined {
  const cells: string[] = []
  for (const [, quoted, plain = '', end] of record.matchAll(CELL)) {
    cells.push(quoted?.replaceAll('""', '"') ?? plain)
    if (end === '') return cells
  }
  return undefined
}

function writeCells(cells: readonly string[]): string {
  return cells.map(writeCell).join(',')
}

function writeCell(text: string): string {
  // Some programs trim cells without quotes.
  return /[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
