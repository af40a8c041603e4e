import type { ExportedLink } from '../../db/links/transfer.ts'
import { readCells, writeCells } from './csv.ts'
import { readImportTime, type ImportLine } from './import-line.ts'
import { INSTANT_FORM } from '../../kernel/time.ts'

/** The columns of a CSV file; a file to be imported may have them in any order, and only some. */
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

type Column = (typeof COLUMNS)[number]

/** The header of an exported file. */
export const CSV_HEADER = writeCells(COLUMNS)

/** Columns by their place in each record, or what is wrong with the header. */
export function readHeader(record: string): readonly Column[] | string {
  const names = (readCells(record) ?? []).map((cell) => cell.trim().toLowerCase())
  const columns: Column[] = []
  for (const name of names) {
    const column = COLUMNS.find((known) => known === name)
    if (column === undefined) {
      return `The first line must be a header of column names separated by commas: ${COLUMNS.join(', ')}`
    }
    if (columns.includes(column)) return `The header has the column ${column} twice`
    columns.push(column)
  }
  const missing = (['slug', 'url'] as const).find((name) => !columns.includes(name))
  return missing === undefined ? columns : `The header must have the column ${missing}`
}

/** Reads a record under a header. An empty cell says nothing where a word is due, and clears a text. */
export function readCsvLink(line: number, text: string, columns: readonly Column[]): ImportLine {
  const cells = readCells(text)
  if (cells === undefined) {
    return { line, slug: '', problem: 'a quoted field is followed by something else than a comma' }
  }
  const cell = (name: Column): string | undefined => cells[columns.indexOf(name)]
  const word = (name: Column): string => cell(name)?.trim() ?? ''
  const slug = word('slug')
  if (cells.length !== columns.length) {
    const problem = `has ${cells.length} fields, the header has ${columns.length}`
    return { line, slug, problem }
  }
  const created_at = readImportTime(word('created_at'))
  const updated_at = readImportTime(word('updated_at'))
  if (created_at === 'bad') return { line, slug, problem: `created_at must be ${INSTANT_FORM}` }
  if (updated_at === 'bad') return { line, slug, problem: `updated_at must be ${INSTANT_FORM}` }
  const appends = word('append_path').toLowerCase()
  const [title, description, tags] = [cell('title'), cell('description'), cell('tags')]
  return {
    line,
    slug,
    fields: {
      url: word('url'),
      ...(title !== undefined && { title }),
      ...(description !== undefined && { description }),
      ...(tags !== undefined && { tags: readList(tags) }),
      ...(word('visibility') !== '' && { visibility: word('visibility').toLowerCase() }),
      ...(appends !== '' && { append_path: readBoolean(appends) }),
    },
    owner: word('owner'),
    coOwners: readList(word('co_owners')),
    sharedWith: readList(word('shared_with')),
    created_at,
    updated_at,
    note: '',
  }
}

/** A link as a record under `CSV_HEADER`. */
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

/** Tags and addresses are separated by semicolons or commas: spaces in a tag become dashes. */
function readList(text: string): readonly string[] {
  return text
    .split(/[;,]/)
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '')
}

/** Other words are left to the check of the field, which says what they should be. */
function readBoolean(word: string): boolean | string {
  return word === 'true' || word === 'false' ? word === 'true' : word
}
