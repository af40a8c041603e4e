import type { ExportedLink } from '../../../../db/links/transfer/transfer.ts'
import { GATEHOUSE } from './sources.ts'

/** The columns of an exported file. */
const COLUMNS = Object.keys(GATEHOUSE.columns)

/** The header of an exported file. */
export const CSV_HEADER = writeCells(COLUMNS)

/** What begins a formula in a spreadsheet (OWASP, CSV injection). */
const FORMULA = /^[=+\-@\t\r]/

/** A link as a record below `CSV_HEADER`. */
export function writeCsvLink(link: ExportedLink, forSpreadsheets: boolean): string {
  const { owners, tags, append_path, created_at, updated_at, shared_with, ...others } = link
  const { expires_at, max_visits, archived, aliases, ...plain } = others
  const co_owners = owners.filter(({ is_primary }) => !is_primary).map(({ email }) => email)
  const cells: Readonly<Record<string, string>> = {
    ...plain,
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
  const texts = COLUMNS.map((column) => cells[column] ?? '')
  return writeCells(
    forSpreadsheets ? texts.map((text) => (FORMULA.test(text) ? `'${text}` : text)) : texts,
  )
}

function writeCells(cells: readonly string[]): string {
  return cells.map(writeCell).join(',')
}

function writeCell(text: string): string {
  // Some programs trim cells without quotes.
  return /[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
