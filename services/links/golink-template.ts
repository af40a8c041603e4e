/** A golink URL as a link of ours, or why it has no equal here. */
export type FromTemplate =
  | { readonly url: string; readonly append_path: boolean }
  | { readonly problem: string }

/** A part of a template: text, `{{.Path}}`, or what stands between `{{if .Path}}` and `{{end}}`. */
type Part = string | typeof PATH | { readonly inside: readonly Part[] }

const PATH = Symbol('path')
/** No template is as long: its url may have 2,048 characters. */
const TEMPLATE_LONGEST = 8_192
const PLACE = /\{([1-9*])\}/g
const ESCAPED = '(?:(?:PathEscape|QueryEscape) +)?'
const PIPED = '(?: *\\| *(?:PathEscape|QueryEscape))?'
const PATH_ACTION = new RegExp(`^${ESCAPED}\\$?\\.Path${PIPED}$`)
const DOT_ACTION = new RegExp(`^${ESCAPED}\\.${PIPED}$`)

/**
 * Reads the `Long` of a golink. Without a template golink appends a visit's further path; with one
 * only the template says where the path goes: `{{.Path}}` is our `{*}`, and `{{if .Path}}/{{.Path}}{{end}}`
 * (or `with`) at the end of a path is our `append_path`.
 */
export function fromTemplate(long: string): FromTemplate {
  if (long.length > TEMPLATE_LONGEST) return { problem: 'its url is too long' }
  if (!long.includes('{{')) return { url: asText(long), append_path: true }
  const parts = readParts(long)
  if (typeof parts === 'string') return { problem: parts }
  let url = ''
  for (const [at, part] of parts.entries()) {
    if (typeof part === 'string') url += asText(part)
    else if (part === PATH || isOnly(part.inside, [PATH])) url += '{*}'
    else if (
      at === parts.length - 1 &&
      isOnly(part.inside, ['/', PATH]) &&
      !/[?#]|\{\*\}/.test(url)
    )
      return { url, append_path: true }
    else {
      const problem = 'its template leads elsewhere when there is a further path, which no link can'
      return { problem: `${problem}; give one url, with {*} where the path goes` }
    }
  }
  return { url, append_path: false }
}

/**
 * The `Long` that leads where our link does; undefined when golink can't say it, which has no numbered
 * places. Whether the further path is appended is lost: golink always does when there is no template.
 */
export function toTemplate(url: string): string | undefined {
  if (/\{[1-9]\}/.test(url)) return undefined
  if (!url.includes('{*}') && !url.includes('{{')) return url
  const texts = url.split('{*}')
  return texts.map((text) => text.replaceAll('{', '%7B').replaceAll('}', '%7D')).join('{{.Path}}')
}

/** Text that would be a place here is none in golink. */
function asText(text: string): string {
  return text.replace(PLACE, '%7B$1%7D')
}

/** The parts of a template, or what is wrong with it. */
function readParts(template: string): readonly Part[] | string {
  const outside: Part[] = []
  let inside: Part[] | undefined
  let dot = false
  // Text and the content of braces alternate.
  const pieces = template.split(/\{\{(?:- )?(.*?)(?: -)?\}\}/s)
  for (const [at, piece] of pieces.entries()) {
    const parts = inside ?? outside
    const action = piece.trim()
    if (at % 2 === 0) {
      if (piece.includes('{{')) return 'its template is broken: a {{ is not closed'
      if (piece !== '') parts.push(piece)
    } else if (PATH_ACTION.test(action) || (dot && DOT_ACTION.test(action))) parts.push(PATH)
    else if (/^\/\*.*\*\/$/s.test(action)) continue
    else if (inside === undefined && /^(if|with) +\.Path$/.test(action)) {
      inside = []
      dot = action.startsWith('with')
    } else if (inside !== undefined && action === 'end') {
      outside.push({ inside })
      ;[inside, dot] = [undefined, false]
    } else return `its template has {{${action}}}, which has no equal here`
  }
  return inside === undefined ? outside : 'its template is broken: {{end}} is missing'
}

function isOnly(parts: readonly Part[], wanted: readonly Part[]): boolean {
  return parts.length === wanted.length && parts.every((part, at) => part === wanted[at])
}
