import type { Database } from '../../db/client.ts'
import { transferQueries } from '../../db/links/transfer.ts'
import { writeGolink } from './golink.ts'
import { CSV_HEADER, writeCsvLink } from './import-csv.ts'
import type { Format } from './import-source.ts'

/** A part of an export: its lines, and what is left out of it. */
export interface ExportPart {
  readonly lines: readonly string[]
  /** Slugs of links that the format can't hold. */
  readonly left: readonly string[]
  /** How many private and secure links are left out. */
  readonly hidden: number
}

const PAGE = 500

/** All links by slug, or the public ones alone, page by page, as text that an import takes. */
export async function* exportLinks(
  db: Database,
  format: Format,
  publicOnly: boolean,
): AsyncGenerator<ExportPart> {
  if (format === 'csv') yield { lines: [CSV_HEADER], left: [], hidden: 0 }
  let after = ''
  for (;;) {
    const links = await transferQueries.listLinksToExport(db, { after, limit: PAGE })
    const [lines, left]: [string[], string[]] = [[], []]
    const shown = links.filter(({ visibility }) => !publicOnly || visibility === 'public')
    for (const link of shown) {
      const line = format === 'csv' ? writeCsvLink(link) : writeGolink(link)
      if (line === undefined) left.push(link.slug)
      else lines.push(line)
    }
    yield { lines, left, hidden: links.length - shown.length }
    const last = links.at(-1)
    if (last === undefined || links.length < PAGE) return
    after = last.slug
  }
}
