import type { Link } from '../../../../db/links/names/links.ts'
import { namesOf } from '../../names/aliases/names.ts'
import { foldName } from '../../names/links/slug.ts'
import { toTemplate } from './golink-template.ts'

/**
 * A link as lines of golink's export, one for each name, or why golink can't have it. Of names that
 * differ in dashes only golink keeps one.
 */
export function writeGolink(link: Link): { line: string } | { problem: string } {
  const { created_at, updated_at, owners, expires_at, max_visits, archived } = link
  // There it would lead on for ever.
  if (archived || expires_at !== null || max_visits !== null) {
    return { problem: 'golink has no end of a link: no expiry, limit of visits or archive' }
  }
  const target = toTemplate(link)
  if ('problem' in target) return target
  const Owner = owners.find(({ is_primary }) => is_primary)?.email ?? ''
  const same = Map.groupBy(namesOf(link), foldName)
  const rows = same.values().map(([Short]) =>
    JSON.stringify({
      Short,
      Long: target.Long,
      Created: created_at.toISOString(),
      LastEdit: updated_at.toISOString(),
      Owner,
    }),
  )
  return { line: [...rows].join('\n') }
}
