import type { Table } from './tables.ts'

/**
 * A value of bytes that is longer than this many does not stand in the text of its row: instead of it there
 * is `@SHA-256:LENGTH`, and its bytes come behind the row, in pieces of so many bytes. No database then
 * has to hold more of it than the value itself. Backups are made with this number.
 */
export const PIECE = 512 * 1024

/** A value that comes in pieces. */
export interface LargeValue {
  /** What stands in the row instead. */
  readonly mark: string
  /** The column, quoted for SQL. */
  readonly column: string
  readonly pieces: number
}

/** The text of a column in its row. */
export function textOf({ name, type }: Table['columns'][number]): string {
  const whole = `t.${name}::text`
  if (type !== 'bytea') return whole
  const length = `octet_length(t.${name})`
  const mark = `'@' || encode(sha256(t.${name}), 'hex') || ':' || ${length}`
  return `case when ${length} > ${PIECE} then ${mark} else ${whole} end`
}

/** The value of a column out of its text; `mark` values are put together from the table `pieces`. */
export function valueOf({ name, type }: Table['columns'][number]): string {
  const whole = `r.${name}::${type}`
  if (type !== 'bytea') return whole
  const joined = `(select string_agg(p.piece, '' order by p.place) from pieces p where p.mark = r.${name})`
  return `case when r.${name} like '@%' then ${joined} else ${whole} end`
}

/** The large values of a row, in the order of its columns. */
export function largeValues({ columns }: Table, row: string): readonly LargeValue[] {
  if (!row.includes('":"@')) return []
  const texts: Readonly<Record<string, string | null>> = JSON.parse(row)
  return columns.flatMap(({ name, member, type }) => {
    const mark = type === 'bytea' ? texts[member] : null
    const [, length] = /^@[\da-f]{64}:(\d{1,10})$/.exec(mark ?? '') ?? []
    if (mark === undefined || mark === null || length === undefined) return []
    return [{ mark, column: name, pieces: Math.ceil(Number(length) / PIECE) }]
  })
}

/** Whether a line is a piece, and not a row. */
export function isPiece(line: string): boolean {
  return line.startsWith('\\x')
}
