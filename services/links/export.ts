import type { Database } from '../../db/client.ts'
import { listLinksToExport } from '../../db/links/transfer.ts'
import { writeGolink } from './golink.ts'
import { CSV_HEADER, writeCsvLink } from './import-csv.ts'
import type { Format } from './import-source.ts'

/** A part of an export: its lines, and the slugs of links that the format can't hold. */
export interface ExportPart {
  readonly lines: readonly string[]
  readonly left: readonly string[]
}

const PAGE = 500

/** All links by slug, page by page, as text that an import takes. */
export async function* exportLinks(db: Database, format: Format): AsyncGenerator<ExportPart> {
  if (format === 'csv') yield { lines: [CSV_HEADER], left: [] }
  let after = ''
  for (;;) {
    const links = await listLinksToExport(db, after, PAGE)
    const [lines, left]: [string[], string[]] = [[], []]
    for (const link of links) {
      const line = format === 'csv' ? writeCsvLink(link) : writeGolink(link)
      if (line === undefined) left.push(link.slug)
      else lines.push(line)
    }
    yield { lines, left }
    const last = links.at(-1)
    if (last === undefined || links.length < PAGE) return
    after = last.slug
  }
}
