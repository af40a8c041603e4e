import { badRequest } from '../../../../kernel/fault.ts'
import { isWholeAddress, withoutBraces, withoutPlaces } from './placeholders.ts'
import type { TargetFields } from './target.ts'

/** Reading a template is bounded: this is the length of the longest url. */
const MAX_TEMPLATE_LENGTH = 8_192

/** The further path of a visit; within `{{with .Path}}` the dot is the path. */
const PATH_ACTION = writes('\\$?\\.Path')
const DOT_PATH_ACTION = writes('(?:\\$\\.Path|\\.)')
const USER_ACTION = writes('\\$?\\.User')
const DOT_USER_ACTION = writes('\\$\\.User')
const COMMENT = /^\/\*.*\*\/$/
const BEGIN_ACTION = /^(if|with) +([^ ].*)$/
const OR_ACTION = /^or +\$?\.Path +"([^"\\]*)"$/

/** Conditions on the path alone, and whether they hold for a visit with one. */
const CONDITIONS: ReadonlyMap<string, boolean> = new Map([
  ['.Path', true],
  ['$.Path', true],
  ['ne .Path ""', true],
  ['eq .Path ""', false],
  ['not .Path', false],
])

/** An `{{if}}` or `{{with}}` without its `{{end}}` so far. */
interface Block {
  /** Whether what is read now counts for the visit. */
  counts: boolean
  dotIsPath: boolean
  /** Of what stands around the block. */
  outerDotIsPath: boolean
  hasElse: boolean
}

/**
 * Reads the `Long` of a golink. Without a template golink appends the further path of a visit.
 * With one, only the template says where the path goes. A template has two results, with a path and
 * without one. They become one url: `{{.Path}}` is `{*}`, and the text of the result without a path
 * is its default. Throws the Fault of a template that no url here can express.
 */
export function fromTemplate(long: string): TargetFields {
  if (long.length > MAX_TEMPLATE_LENGTH) throw badRequest('its url is too long')
  // A URL with control characters is refused with the other fields.
  if (!long.includes('{{') || /\p{Cc}/u.test(long)) {
    return { url: withoutPlaces(long), append_path: true }
  }
  const parts = splitActions(long)
  const joined = joinResults(expand(parts, true), expand(parts, false))
  if (joined !== undefined) return joined
  const problem = 'its template leads elsewhere when there is a further path, which no link can'
  throw badRequest(`${problem}; give one url, with {*} where the path goes`)
}

/** The url that gives both results; undefined when no url does. */
function joinResults(withPath: string, without: string): TargetFields | undefined {
  const [head = '', ...tails] = withPath.split('{*}')
  if (head + tails.join('') === without) return { url: withPath, append_path: false }
  if (tails.length === 0) return undefined
  const tail = tails.join('{*}')
  if (isAppended(head, tail) && head.slice(0, -1) + tail === without) {
    return { url: without, append_path: true }
  }
  const fallback = between(without, head, tail) ?? without
  const isUsable = fallback !== without || isWholeAddress(without)
  if (!isUsable || fallback.includes('{user}')) return undefined
  return { url: `${head}{*:${withoutBraces(fallback)}}${tail}`, append_path: false }
}

/** Whether our `append_path` puts a path between these texts. */
function isAppended(head: string, tail: string): boolean {
  return head.endsWith('/') && !/[?#]/.test(head) && /^(?:[?#]|$)/.test(tail)
}

/** The part between `head` and `tail`; undefined if the text lacks one of them. */
function between(text: string, head: string, tail: string): string | undefined {
  const isBetween = text.startsWith(head) && text.slice(head.length).endsWith(tail)
  return isBetween ? text.slice(head.length, text.length - tail.length) : undefined
}

/** What a template gives for visits with a path, which is `{*}`, or for those without. */
function expand(parts: readonly string[], hasPath: boolean): string {
  const blocks: Block[] = []
  let result = ''
  for (const [at, part] of parts.entries()) {
    const isText = at % 2 === 0
    if (isText && part.includes('{{')) {
      throw badRequest('its template is broken: a {{ is not closed')
    }
    const text = isText ? withoutPlaces(part) : runAction(part.trim(), blocks, hasPath)
    if (blocks.every(({ counts }) => counts)) result += text
  }
  if (blocks.length > 0) throw badRequest('its template is broken: {{end}} is missing')
  return result
}

/** Runs an action, which may begin or end a block. Returns the text that it writes. */
function runAction(action: string, blocks: Block[], hasPath: boolean): string {
  const block = blocks.at(-1)
  const dotIsPath = block?.dotIsPath ?? false
  if (COMMENT.test(action)) return ''
  if ((dotIsPath ? DOT_PATH_ACTION : PATH_ACTION).test(action)) return hasPath ? '{*}' : ''
  if ((dotIsPath ? DOT_USER_ACTION : USER_ACTION).test(action)) return '{user}'
  const [, otherwise] = OR_ACTION.exec(action) ?? []
  if (otherwise !== undefined && !dotIsPath) return hasPath ? '{*}' : withoutPlaces(otherwise)
  if (action === 'end' && block !== undefined) {
    blocks.pop()
    return ''
  }
  if (action === 'else' && block?.hasElse === false) {
    const { counts, outerDotIsPath } = block
    Object.assign(block, { counts: !counts, dotIsPath: outerDotIsPath, hasElse: true })
    return ''
  }
  const [, kind, condition = ''] = BEGIN_ACTION.exec(action) ?? []
  const holds = CONDITIONS.get(condition)
  const isKnown = condition.startsWith('$') || !dotIsPath
  if (holds === undefined || !isKnown || (kind === 'with' && !condition.endsWith('.Path'))) {
    throw badRequest(`its template has {{${action}}}, which has no equal here`)
  }
  const isPath = kind === 'with' || dotIsPath
  const outer = { outerDotIsPath: dotIsPath, hasElse: false }
  blocks.push({ counts: holds === hasPath, dotIsPath: isPath, ...outer })
  return ''
}

/** Text and the contents of double braces in turn; a `{{` that is not closed stays text. */
function splitActions(template: string): readonly string[] {
  const parts: string[] = []
  let rest = template
  for (;;) {
    const start = rest.indexOf('{{')
    const end = start < 0 ? -1 : rest.indexOf('}}', start + 2)
    if (end < 0) return [...parts, rest]
    const action = rest.slice(start + 2, end)
    const text = rest.slice(0, start)
    rest = rest.slice(end + 2)
    // A dash inside trims the white space outside.
    if (action.endsWith(' -')) rest = rest.trimStart()
    const isTrimmed = action.startsWith('- ')
    parts.push(isTrimmed ? text.trimEnd() : text, action.replace(/^- /, '').replace(/ -$/, ''))
  }
}

/** Matches an action that writes a value, escaped or not. */
function writes(value: string): RegExp {
  const escaped = '(?:PathEscape|QueryEscape|urlquery)'
  return new RegExp(`^(?:${escaped} +)?${value}(?: *\\| *${escaped})?$`)
}
