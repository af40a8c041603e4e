import { trimBoth } from '../../../../kernel/text.ts'

/** The formats of exported files: golink's JSON lines, or CSV. */
export const FORMATS = ['jsonl', 'csv'] as const
export type Format = (typeof FORMATS)[number]

/** What a row of a file says of a link; the fields are not checked yet. */
export interface LinkData {
  /**
   * Fields by their names in the API. Those that the row does not have are undefined: they stay.
   */
  fields: Readonly<Record<string, unknown>>
  /** E-mail address of the primary owner; empty when the row names none. */
  owner: string
  coOwners: readonly string[]
  sharedWith: readonly string[]
  created_at: Date | undefined
  updated_at: Date | undefined
  /** What the report says beside the outcome, such as a slug that had to be changed. */
  note: string
}

/** A row as a link; its slug may be empty. `read` throws a Fault if it cannot be read. */
export interface ImportLine {
  line: number
  slug: string
  /** Its name in the other program, which may tell names apart that are one slug here. */
  name?: string
  read: (now: Date) => LinkData
}

/** A longer name is not a slug, whatever is cut off its ends. */
const MAX_NAME_LENGTH = 1_000

/**
 * The slug that visits by a name of another program find: others also take upper case, `_` and
 * `.`, and dashes at the ends.
 */
export function slugOfName(name: string): string {
  const slug = name.toLowerCase().replaceAll(/[._]/g, '-')
  return slug.length > MAX_NAME_LENGTH ? slug : trimBoth(slug, /-/)
}
