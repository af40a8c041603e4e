import type { ExportedLink } from '../../../db/links/transfer.ts'
import { badRequest } from '../../../kernel/fault.ts'
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
  'created_at',
  'updated_at',
  'co_owners',
  'shared_with',
] as const

export type Column = (typeof COLUMNS)[number]

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
  if (cells === undefined) {
    throw badRequest('a quoted field is followed by something else than a comma')
  }
  const cell = (name: Column): string | undefined => cells[columns.indexOf(name)]
  const word = (name: Column): string => cell(name)?.trim() ?? ''
  return {
    slug: word('slug'),
    read() {
      if (cells.length !== columns.length) {
        throw badRequest(`has ${cells.length} fields, the header has ${columns.length}`)
      }
      const tags = cell('tags')
      const appends = word('append_path').toLowerCase()
      return {
        fields: {
          url: word('url'),
          title: cell('title'),
          description: cell('description'),
          tags: tags === undefined ? undefined : readList(tags),
          visibility: word('visibility').toLowerCase() || undefined,
          append_path: readBoolean(appends),
        },
        owner: word('owner'),
        coOwners: readList(word('co_owners')),
        sharedWith: readList(word('shared_with')),
        created_at: readImportTime('created_at', word('created_at')),
        updated_at: readImportTime('updated_at', word('updated_at')),
        note: '',
      }
    },
  }
}

/** A link as a record below `CSV_HEADER`. */
export function writeCsvLink(link: ExportedLink): string {
  const { owners, tags, append_path, created_at, updated_at, shared_with } = link
  const co_owners = owners.filter(({ is_primary }) => !is_primary).map(({ email }) => email)
  const cells: Readonly<Record<Column, string>> = {
    slug: link.slug,
    url: link.url,
    title: link.title,
    description: link.description,
    tags: tags.join(';'),
    owner: owners.find(({ is_primary }) => is_primary)?.email ?? '',
    visibility: link.visibility,
    append_path: String(append_path),
    created_at: created_at.toISOString(),
    updated_at: updated_at.toISOString(),
    co_owners: co_owners.join(';'),
    shared_with: shared_with.join(';'),
  }
  return writeCells(COLUMNS.map((column) => cells[column]))
}

/** Tags and addresses are separated by semicolons or commas; tags have spaces in them. */
function readList(text: string): readonly string[] {
  return text
    .split(/[;,]/)
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '')
}

/** Other words stay, to be refused with the fields; undefined for none. */
function readBoolean(word: string): boolean | string | undefined {
  if (word === '') return undefined
  return word === 'true' || word === 'false' ? word === 'true' : word
}

/**
 * The cells of a record (RFC 4180); undefined when something other than a comma follows a quoted
 * cell.
 */
function readCells(record: string): readonly string[] | undefined {
  const cells: string[] = []
  for (let at = 0; ; at++) {
    const isQuoted = record[at] === '"'
    const end = isQuoted ? endOfQuoted(record, at + 1) : endOfPlain(record, at)
    if (end === undefined) return undefined
    const cell = record.slice(at, end)
    cells.push(isQuoted ? cell.slice(1, -1).replaceAll('""', '"') : cell)
    at = end
    if (at >= record.length) return cells
  }
}

function endOfPlain(record: string, from: number): number {
  const comma = record.indexOf(',', from)
  return comma < 0 ? record.length : comma
}

function endOfQuoted(record: string, from: number): number | undefined {
  let quote = record.indexOf('"', from)
  while (quote >= 0 && record[quote + 1] === '"') quote = record.indexOf('"', quote + 2)
  if (quote < 0) return undefined
  const end = quote + 1
  return end === record.length || record[end] === ',' ? end : undefined
}

function writeCells(cells: readonly string[]): string {
  return cells.map(writeCell).join(',')
}

function writeCell(text: string): string {
  // Some programs trim cells without quotes.
  return /[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
