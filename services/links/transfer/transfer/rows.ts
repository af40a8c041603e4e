import {
  isList,
  isObject,
  memberAt,
  parseObject,
  type JsonObject,
} from '../../../../kernel/json.ts'
import { partsOf } from '../../names/links/input.ts'

/** A link as a file has it: the cells of a line of CSV, or the members of a JSON object. */
export interface Row {
  /** Where it begins, counted from 1. */
  line: number
  /** Why it cannot be read. */
  problem?: string
  /** The names of its columns, as the file writes them. */
  columns: readonly string[]
  has: (column: string) => boolean
  /** Empty where the column is missing, or has nothing. */
  text: (column: string) => string
  /** The parts of a list; in CSV they stand in one cell. */
  parts: (column: string, separator: RegExp) => readonly string[]
}

/** The most columns of a file, more than any program exports: a report lists each of them. */
export const MAX_COLUMNS = 200

/** Links are far smaller. Larger ones come from files of another kind, or from an open quote. */
export const MAX_ROW_BYTES = 1024 * 1024

/** A row that cannot be read. */
export function unreadable(line: number, problem: string): Row {
  return {
    line,
    problem,
    columns: [],
    has: () => false,
    text: () => '',
    parts: () => [],
  }
}

/** `Date created`, `date_created` and `dateCreated` are one column of a spreadsheet. */
export function foldColumn(name: string): string {
  return name.toLowerCase().replaceAll(/[\s_-]/g, '')
}

/** A header, as what makes rows of the cells below it. */
export function rowsBelow(
  columns: readonly string[],
): (line: number, cells: readonly string[]) => Row {
  const places = new Map(columns.map((column, at) => [foldColumn(column), at]))
  const named = columns.filter((column) => column !== '')
  const has = (column: string) => places.has(foldColumn(column))
  return (line, cells) => {
    const text = (column: string) => cells[places.get(foldColumn(column)) ?? -1] ?? ''
    const parts = (column: string, separator: RegExp) => partsOf(text(column), separator)
    const row = { line, columns: named, has, text, parts }
    return cells.length === columns.length
      ? row
      : { ...row, problem: `has ${cells.length} fields, the header has ${columns.length}` }
  }
}

/** The first column of a header that repeats an earlier one; undefined if none does. */
export function repeatedColumn(columns: readonly string[]): string | undefined {
  const named = columns.filter((column) => column !== '')
  const folded = named.map(foldColumn)
  return named.find((_, at) => folded.indexOf(folded[at] ?? '') < at)
}

/** A JSON text as a row, where a column may be a path such as `user.email`. */
export function jsonRow(line: number, text: string): Row {
  const object = parseObject(text)
  return object === undefined ? unreadable(line, 'is not a JSON object') : objectRow(line, object)
}

function objectRow(line: number, object: JsonObject): Row {
  return {
    line,
    columns: Object.keys(object).slice(0, MAX_COLUMNS),
    has: (column) => memberAt(object, column) !== undefined,
    text: (column) => textOf(memberAt(object, column)),
    parts(column, separator) {
      const value = memberAt(object, column)
      return isList(value) ? value.map(textOf).filter(Boolean) : partsOf(textOf(value), separator)
    },
  }
}

/** A JSON value as the text of a cell; an object, such as a tag, is its name. */
function textOf(value: unknown): string {
  // JSON can have halves of characters, which the database does not take.
  if (typeof value === 'string') return value.toWellFormed()
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  if (isList(value)) return value.map(textOf).filter(Boolean).join(', ')
  if (!isObject(value)) return ''
  return typeof value['name'] === 'string' ? value['name'].toWellFormed() : JSON.stringify(value)
}
