import { mediaType } from '../../../../kernel/http/headers.ts'

// XML and YAML as lines that fold: what is within an element, or indented further, is below it.

/** A piece of a line, of one colour. */
export interface Piece {
  kind: 'key' | 'string' | 'number' | 'muted' | 'plain'
  text: string
}

/** A line with the lines that fold below it. */
export interface OutlineLine {
  pieces: readonly Piece[]
  below: readonly OutlineLine[]
}

/** What a page shows folded; a longer text, or a deeper one, is shown as it is. */
const MAX_CHARACTERS = 200_000
const MAX_LINES = 1_000
const MAX_DEPTH = 40
/** Of one line, such as a tag with 100 attributes. */
const MAX_PIECES = 201

/** The lines of XML or YAML; undefined for other texts, and where there is too much. */
export function outlineOf(
  text: string,
  contentType: string | null,
): readonly OutlineLine[] | undefined {
  if (text.length > MAX_CHARACTERS) return undefined
  const type = mediaType(contentType ?? undefined)
  if (/[/+]xml$/.test(type) || text.startsWith('<?xml')) return xmlLines(text)
  return /[/+.-]yaml$/.test(type) ? yamlLines(text) : undefined
}

interface Open extends OutlineLine {
  pieces: Piece[]
  below: Open[]
}

function lineOf(...pieces: Piece[]): Open {
  return { pieces, below: [] }
}

/**
 * Comments, CDATA, declarations, tags, and the text between them. One without an end extends to the
 * end of the text: a search for its end from each place would take quadratic time.
 */
const XML_TOKEN =
  /<!--[^]*?(?:-->|$)|<!\[CDATA\[[^]*?(?:\]\]>|$)|<\?[^]*?(?:\?>|$)|<[^<>]*>|[^<]+|</g

/** Undefined where elements are not closed as they were opened. */
function xmlLines(text: string): readonly OutlineLine[] | undefined {
  const root = lineOf()
  const open = [root]
  let count = 0
  for (const [token] of text.matchAll(XML_TOKEN)) {
    const parent = open.at(-1) ?? root
    const shown = token.trim()
    if (shown === '') continue
    count++
    if (count > MAX_LINES || open.length > MAX_DEPTH) return undefined
    if (shown.startsWith('</')) {
      if (open.length === 1) return undefined
      open.pop()
      closeElement(parent, shown, open.at(-1) ?? root)
      continue
    }
    const pieces = xmlPieces(shown)
    if (pieces.length > MAX_PIECES) return undefined
    const line = lineOf(...pieces)
    parent.below.push(line)
    if (/^<[^!?/][^]*[^/]>$|^<\w>$/.test(shown)) open.push(line)
  }
  return open.length === 1 ? root.below : undefined
}

/** An element of text alone is one line. */
function closeElement(element: Open, tag: string, parent: Open): void {
  const [only, ...others] = element.below
  const isShort = others.length === 0 && only?.pieces.every(({ kind }) => kind === 'plain')
  if (isShort === true || only === undefined) {
    element.pieces.push(...(only?.pieces ?? []), ...xmlPieces(tag))
    element.below = []
  } else {
    parent.below.push(lineOf(...xmlPieces(tag)))
  }
}

function xmlPieces(token: string): readonly Piece[] {
  if (/^<[!?]/.test(token)) return [{ kind: 'muted', text: token }]
  if (!/^<[^<>]+>$/.test(token)) return [{ kind: 'plain', text: token }]
  return token
    .split(/("[^"]*"|'[^']*')/)
    .map((text, at) => ({ kind: at % 2 === 1 ? 'string' : 'key', text }) as const)
}

const YAML_LINE = /^((?:- +)*)([^\s#:'"][^:]*:(?=\s|$))?([^]*)$/

/** A line belongs to the last one before it that is indented less. Empty lines are left out. */
function yamlLines(text: string): readonly OutlineLine[] | undefined {
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== '')
  if (lines.length > MAX_LINES) return undefined
  const root = lineOf()
  const open = [{ line: root, indent: -1 }]
  for (const source of lines) {
    const line = lineOf(...yamlPieces(source.trim()))
    const indent = source.search(/\S/)
    while (indent <= (open.at(-1)?.indent ?? -1)) open.pop()
    const parent = open.at(-1)?.line ?? root
    parent.below.push(line)
    if (open.length > MAX_DEPTH) return undefined
    open.push({ line, indent })
  }
  return root.below
}

function yamlPieces(source: string): readonly Piece[] {
  const [, start = '', key = '', value = ''] = YAML_LINE.exec(source) ?? []
  const kind = yamlKind(value.trim())
  const pieces: readonly Piece[] = [
    { kind: 'plain', text: start },
    { kind: 'key', text: key },
    { kind, text: value },
  ]
  return pieces.filter((piece) => piece.text !== '')
}

function yamlKind(value: string): Piece['kind'] {
  if (value.startsWith('#')) return 'muted'
  if (/^-?\d+(?:\.\d+)?$/.test(value)) return 'number'
  return /^(?:true|false|null|~|[|>&*!][^]*)?$/.test(value) ? 'plain' : 'string'
}
