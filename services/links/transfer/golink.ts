import type { Link } from '../../../db/links/links.ts'
import { badRequest } from '../../../kernel/fault.ts'
import { parseObject, stringOf } from '../../../kernel/json.ts'
import { trimBoth } from '../../../kernel/text.ts'
import { namesOf } from '../aliases/names.ts'
import { foldName } from '../links/slug.ts'
import type { TargetFields } from '../links/target.ts'
import { readImportTime, type LinkRecord } from './records.ts'

/** A longer name is not a slug, whatever is cut off its ends. */
const MAX_SHORT_LENGTH = 1_000
/** Templates are never this long: their URLs may have 2,048 characters. */
const MAX_TEMPLATE_LENGTH = 8_192

const PATH_ACTION = pathAction('\\$?\\.Path')
const DOT_ACTION = pathAction('\\.')
/** Stand for `{{if .Path}}` or `{{with .Path}}`, and for `{{end}}`. */
const BEGIN = '\u0001'
const END = '\u0002'
const APPENDED_PATH = `${BEGIN}/{*}${END}`

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
  const slug = slugOfShort(short ?? '')
  return {
    slug,
    read() {
      if (object === undefined) throw badRequest('is not a JSON object')
      if (short === undefined) throw badRequest('Short is missing')
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
  const { url, created_at, updated_at, owners, expires_at, max_visits, archived } = link
  // There it would lead on for ever.
  if (archived || expires_at !== null || max_visits !== null) {
    return { problem: 'golink has no end of a link: no expiry, limit of visits or archive' }
  }
  const Long = toTemplate(url)
  if (Long === undefined) return { problem: 'golink has no places such as {1} in a URL' }
  const Owner = owners.find(({ is_primary }) => is_primary)?.email ?? ''
  const names = new Map(
    namesOf(link)
      .toReversed()
      .map((name) => [foldName(name), name]),
  )
  const rows = [...names.values()].toReversed().map((Short) => ({
    Short,
    Long,
    Created: created_at.toISOString(),
    LastEdit: updated_at.toISOString(),
    Owner,
  }))
  return { line: rows.map((row) => JSON.stringify(row)).join('\n') }
}

/** golink also takes upper case, `_` and `.`, and ignores dashes at the ends. */
function slugOfShort(short: string): string {
  const slug = short.toLowerCase().replaceAll(/[._]/g, '-')
  return slug.length > MAX_SHORT_LENGTH ? slug : trimBoth(slug, /-/)
}

/**
 * Reads the `Long` of a golink. Without a template golink appends the further path of a visit.
 * With one, only the template says where the path goes: `{{.Path}}` is our `{*}`, and
 * `{{if .Path}}/{{.Path}}{{end}}` (or `with`) at the end of a path is our `append_path`. Throws
 * the Fault of a template without an equal here.
 */
function fromTemplate(long: string): TargetFields {
  if (long.length > MAX_TEMPLATE_LENGTH) throw badRequest('its url is too long')
  // A URL with control characters is refused with the other fields.
  if (!long.includes('{{') || /\p{Cc}/u.test(long)) {
    return { url: asText(long), append_path: true }
  }
  const whole = translateActions(long).replaceAll(`${BEGIN}{*}${END}`, '{*}')
  const path = whole.endsWith(APPENDED_PATH) ? whole.slice(0, -APPENDED_PATH.length) : ''
  const append_path = path !== '' && !/[?#]|\{\*\}/.test(path)
  const url = append_path ? path : whole
  if (url.includes(BEGIN)) {
    const problem = 'its template leads elsewhere when there is a further path, which no link can'
    throw badRequest(`${problem}; give one url, with {*} where the path goes`)
  }
  return { url, append_path }
}

/** A template with `{*}` for the path, and with marks around what needs a path. */
function translateActions(template: string): string {
  let block: string | undefined
  const parts = splitActions(template).map((part, at) => {
    if (at % 2 === 0) {
      if (part.includes('{{')) throw badRequest('its template is broken: a {{ is not closed')
      return asText(part)
    }
    const action = part.trim()
    if (PATH_ACTION.test(action) || (block === 'with' && DOT_ACTION.test(action))) return '{*}'
    if (/^\/\*.*\*\/$/.test(action)) return ''
    const [, begun] = /^(if|with) +\.Path$/.exec(action) ?? []
    if (block === undefined ? begun === undefined : action !== 'end') {
      throw badRequest(`its template has {{${action}}}, which has no equal here`)
    }
    block = begun
    return begun === undefined ? END : BEGIN
  })
  if (block !== undefined) throw badRequest('its template is broken: {{end}} is missing')
  return parts.join('')
}

/** Text and the contents of double braces in turn; a `{{` that is not closed stays text. */
function splitActions(template: string): readonly string[] {
  const parts: string[] = []
  let at = 0
  for (;;) {
    const start = template.indexOf('{{', at)
    const end = start < 0 ? -1 : template.indexOf('}}', start + 2)
    if (end < 0) return [...parts, template.slice(at)]
    // A dash inside trims the white space outside, which a URL does not have.
    const action = template
      .slice(start + 2, end)
      .replace(/^- /, '')
      .replace(/ -$/, '')
    parts.push(template.slice(at, start), action)
    at = end + 2
  }
}

/**
 * The `Long` that leads where our link does; undefined for numbered placeholders, which golink
 * does not have. Whether the path is appended is lost: golink always does when there is no
 * template.
 */
function toTemplate(url: string): string | undefined {
  if (/\{[1-9]\}/.test(url)) return undefined
  if (!url.includes('{*}') && !url.includes('{{')) return url
  const texts = url.split('{*}')
  const escaped = texts.map((text) => text.replaceAll('{', '%7B').replaceAll('}', '%7D'))
  return escaped.join('{{.Path}}')
}

/** Escapes what would be a placeholder here. */
function asText(text: string): string {
  return text.replace(/\{([1-9*])\}/g, '%7B$1%7D')
}

/** Matches an action that writes the path, escaped or not. */
function pathAction(path: string): RegExp {
  const escaped = '(?:PathEscape|QueryEscape)'
  return new RegExp(`^(?:${escaped} +)?${path}(?: *\\| *${escaped})?$`)
}
