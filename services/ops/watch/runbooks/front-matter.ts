// The front matter of a runbook: a subset of YAML, which is texts by name. Other members are skipped.

/** A runbook's file, by what its front matter says. */
export interface FrontMatter {
  members: ReadonlyMap<string, string>
  /** What follows it. */
  body: string
}

const FENCE = '---'
const MEMBER = /^([A-Za-z][\w-]*):(?:[ \t](.*))?$/
const BLOCK = /^[>|][+-]?$/
const DOUBLE_QUOTED = /^"(?:[^"\\]|\\.)*"$/
const SINGLE_QUOTED = /^'((?:[^']|'')*)'$/
/** What begins a list, an object, or another thing that is no text. */
const NO_TEXT = /^[[\]{}&*!%@`>|]/

/**
 * Reads the members that are wanted. Throws a SyntaxError, to be read after the file's name, if
 * there is no front matter or one of them is no text.
 */
export function readFrontMatter(file: string, wanted: readonly string[]): FrontMatter {
  const lines = file.replace(/^\ufeff/, '').split(/\r?\n/)
  const end = lines.indexOf(FENCE, 1)
  if (lines[0] !== FENCE || end < 0) {
    throw new SyntaxError('it has no front matter between two lines of ---')
  }
  const members = new Map<string, string>()
  for (let at = 1; at < end; at++) {
    const [, name = '', first = ''] = MEMBER.exec(lines[at] ?? '') ?? []
    if (!wanted.includes(name)) continue
    const next = lines.findIndex((line, place) => place > at && /^\S/.test(line))
    const more = lines.slice(at + 1, next).map((line) => line.trim())
    members.set(name, textOf(name, first.trim(), more))
  }
  return {
    members,
    body: lines
      .slice(end + 1)
      .join('\n')
      .trim(),
  }
}

/** A text in one line: plain, in quotes, or as a block of indented lines. */
function textOf(name: string, first: string, more: readonly string[]): string {
  if (BLOCK.test(first)) return more.join(' ').trim()
  const text = [first, ...more].join(' ').trim()
  if (DOUBLE_QUOTED.test(text)) return fromDoubleQuotes(name, text)
  const [, quoted] = SINGLE_QUOTED.exec(text) ?? []
  if (quoted !== undefined) return quoted.replaceAll("''", "'")
  if (/^["']/.test(text)) throw new SyntaxError(`${name} has a quote that is not closed`)
  if (NO_TEXT.test(text)) throw new SyntaxError(`${name} must be a text`)
  const comment = text.search(/(?:^|\s)#/)
  return comment < 0 ? text : text.slice(0, comment)
}

/** JSON has the escapes of YAML that people use. */
function fromDoubleQuotes(name: string, text: string): string {
  try {
    return String(JSON.parse(text))
  } catch {
    throw new SyntaxError(`${name} has an escape that JSON does not have: use single quotes`)
  }
}
