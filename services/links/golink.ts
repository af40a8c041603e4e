import type { Link } from '../../db/links/links.ts'
import { fromTemplate, toTemplate } from './golink-template.ts'
import { readImportTime, type ImportLine } from './import-line.ts'
import { INSTANT_FORM } from '../../kernel/time.ts'

/** A longer name is no slug, whatever is cut off its ends. */
const SHORT_LONGEST = 1_000

/**
 * Reads a line of a golink export (`/.export`): one JSON object with Short, Long, Created, LastEdit and
 * Owner. golink knows no title, description, tags or visibility, so it has no say in them.
 */
export function readGolink(line: number, text: string): ImportLine {
  const object = parse(text)
  if (object === undefined) return { line, slug: '', problem: 'is not a JSON object' }
  const short = textOf(object['Short'])
  const long = textOf(object['Long'])
  if (short === undefined) return { line, slug: '', problem: 'Short is missing' }
  const slug = slugOfShort(short)
  if (long === undefined) return { line, slug, problem: 'Long is missing' }
  const target = fromTemplate(long)
  if ('problem' in target) return { line, slug, problem: target.problem }
  const created_at = readImportTime(textOf(object['Created']) ?? '')
  const updated_at = readImportTime(textOf(object['LastEdit']) ?? '')
  if (created_at === 'bad') return { line, slug, problem: `Created must be ${INSTANT_FORM}` }
  if (updated_at === 'bad') return { line, slug, problem: `LastEdit must be ${INSTANT_FORM}` }
  return {
    line,
    slug,
    fields: { ...target },
    owner: textOf(object['Owner']) ?? '',
    coOwners: [],
    sharedWith: [],
    created_at,
    updated_at,
    note: slug === short ? '' : `was "${short}"`,
  }
}

/** A link as a line of golink's export, or undefined when golink can't say where it leads. */
export function writeGolink(link: Link): string | undefined {
  const { slug, url, created_at, updated_at, owners } = link
  const Long = toTemplate(url)
  if (Long === undefined) return undefined
  const Owner = owners.find(({ is_primary }) => is_primary)?.email ?? ''
  const times = { Created: created_at.toISOString(), LastEdit: updated_at.toISOString() }
  return JSON.stringify({ Short: slug, Long, ...times, Owner })
}

/** golink takes letters of both cases, `_` and `.` as well, and knows no dash at the ends. */
function slugOfShort(short: string): string {
  const slug = short.toLowerCase().replaceAll(/[._]/g, '-')
  // What is too long for a slug in any case is refused as it stands.
  return slug.length > SHORT_LONGEST ? slug : slug.replaceAll(/^-+|-+$/g, '')
}

function parse(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
    return isObject ? { ...value } : undefined
  } catch {
    return undefined
  }
}

/** A text without halves of characters, which JSON can have and no database takes. */
function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value.toWellFormed() : undefined
}
