import type { Link } from '../../../../db/links/names/links.ts'
import { badRequest } from '../../../../kernel/fault.ts'
import { parseObject, stringOf } from '../../../../kernel/json.ts'
import { namesOf } from '../../names/aliases/names.ts'
import { foldName } from '../../names/links/slug.ts'
import { fromTemplate, toTemplate } from './golink-template.ts'
import { readImportTime, slugOfName, type LinkRecord } from './records.ts'

/**
 * Reads a line of a golink export (`/.export`): a JSON object with Short, Long, Created, LastEdit
 * and Owner. golink has no title, description, tags or visibility, so these stay as they are.
 */
export function readGolink(text: string): LinkRecord {
  const object = parseObject(text)
  // JSON can have halves of characters, which the database does not take.
  const word = (name: string): string | undefined => stringOf(object?.[name])?.toWellFormed()
  const short = word('Short')
  const long = word('Long')
  const slug = slugOfName(short ?? '')
  return {
    slug,
    name: short ?? '',
    read() {
      if (object === undefined) throw badRequest('is not a JSON object')
      if (short === undefined) {
        throw badRequest('Short is missing; links of Shlink and kutt need --format')
      }
      if (long === undefined) throw badRequest('Long is missing')
      return {
        created_at: readImportTime('Created', word('Created') ?? ''),
        updated_at: readImportTime('LastEdit', word('LastEdit') ?? ''),
        fields: fromTemplate(long),
        owner: word('Owner') ?? '',
        coOwners: [],
        sharedWith: [],
        note: slug === short ? '' : `was "${short}"`,
      }
    },
  }
}

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
  const names = new Map(
    namesOf(link)
      .toReversed()
      .map((name) => [foldName(name), name]),
  )
  const rows = [...names.values()].toReversed().map((Short) => ({
    Short,
    Long: target.Long,
    Created: created_at.toISOString(),
    LastEdit: updated_at.toISOString(),
    Owner,
  }))
  return { line: rows.map((row) => JSON.stringify(row)).join('\n') }
}
