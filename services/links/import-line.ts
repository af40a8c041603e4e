import { readInstant } from '../../kernel/time.ts'

/** A link as a line of a file has it; nothing of it is checked yet but its form. */
export interface ImportedLink {
  readonly line: number
  readonly slug: string
  /** The fields of the API that the line has a say in; of an existing link the others stay as they are. */
  readonly fields: Readonly<Record<string, unknown>>
  /** E-mail address of the primary owner; empty when the line names none. */
  readonly owner: string
  readonly coOwners: readonly string[]
  readonly sharedWith: readonly string[]
  readonly created_at: Date | undefined
  readonly updated_at: Date | undefined
  /** What the reader of the report should know, such as a slug that had to be changed. */
  readonly note: string
}

/** A line that can't be read as a link. */
export interface BadLine {
  readonly line: number
  /** The slug, as far as it could be read. */
  readonly slug: string
  readonly problem: string
}

export type ImportLine = ImportedLink | BadLine

/** Times before this are no times: golink writes the year 1 for a time that it does not know. */
const EARLIEST = Date.UTC(1970, 0, 1)

/** A time with its zone. Undefined for one that the file does not know; `bad` for other text. */
export function readImportTime(text: string): Date | undefined | 'bad' {
  if (text === '') return undefined
  const time = readInstant(text)
  if (time === undefined) return 'bad'
  return time.getTime() < EARLIEST ? undefined : time
}
