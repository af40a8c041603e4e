import type { SourceFile } from './source-tree.ts'

/** One call of the log, as it stands in the sources. */
export type LogCall = {
  place: string
  /** The service whose file it is in, else `program`. */
  from: string
  level: string
  message: string
  /** Names of its fields; one that only some lines have ends with `?`. */
  fields: readonly string[]
}

const CALL = /\blog(?:\.(info|warn|error)|\[([^\]]*)\])\(/g
/** Work that is repeated says a line when it begins to fail, and one when it works again. */
const REPORTS = /\breportsTo\(/g
const QUOTED = /'([^']*)'/g

/** Every call of the log. Throws for one whose message is no text in quotes: nobody could look it up. */
export function logCalls(files: readonly SourceFile[]): readonly LogCall[] {
  return files.flatMap(({ path, lines }) => {
    const text = lines.join('\n')
    const from = /(^|\/)(hooks|links|ops)(\.ts$|-runners\.ts$|\/)/.exec(path)?.[2] ?? 'program'
    const placeOf = (at: number): string => `${path}:${text.slice(0, at).split('\n').length}`
    const reports = [...text.matchAll(REPORTS)].flatMap(({ 0: call, index }): LogCall[] => {
      const [log, fails, works, about = ''] = splitTop(inside(text, index + call.length - 1))
      if (log !== 'log') return []
      const fields = fieldsOf(about)
      const shared = { place: placeOf(index), from }
      return [
        { ...shared, level: 'warn', message: textOf(fails), fields: [...fields, 'error'] },
        { ...shared, level: 'info', message: textOf(works), fields },
      ]
    })
    const calls = [...text.matchAll(CALL)].flatMap((match): readonly LogCall[] => {
      const [message = '', fields = ''] = splitTop(inside(text, match.index + match[0].length - 1))
      const place = placeOf(match.index)
      const levels = match[1] === undefined ? quotedIn(match[2] ?? '') : [match[1]]
      const messages = quotedIn(message)
      if (messages.length === 0)
        throw new Error(`${place} logs something else than a text in quotes`)
      // A condition chooses both in the same order: `log[down ? 'warn' : 'error'](down ? 'a' : 'b')`.
      return Array.from({ length: Math.max(levels.length, messages.length) }, (_, i) => ({
        place,
        from,
        level: levels[i] ?? levels[0] ?? '',
        message: messages[i] ?? messages[0] ?? '',
        fields: fieldsOf(fields),
      }))
    })
    return [...calls, ...reports]
  })
}

function textOf(literal = ''): string {
  return quotedIn(literal)[0] ?? ''
}

function quotedIn(text: string): readonly string[] {
  return [...text.matchAll(QUOTED)].map((match) => match[1] ?? '')
}

function fieldsOf(literal: string): readonly string[] {
  if (!literal.startsWith('{')) return []
  return splitTop(inside(literal, 0)).flatMap((item) => {
    if (!item.startsWith('...')) {
      const [name = ''] = item.split(':')
      return [/:.*\bundefined\b/s.test(item) || OPTIONAL.includes(name) ? `${name}?` : name]
    }
    return [...item.matchAll(/[{,]\s*(\w+)\s*[:,}]/g)].map((match) => `${match[1]}?`)
  })
}

/** Fields that are undefined, and so left out, where their value is made. */
const OPTIONAL = ['bytes']

/** What stands between a bracket and its partner; quotes and templates are passed over. */
function inside(text: string, open: number): string {
  let depth = 0
  let quote = ''
  for (let at = open; at < text.length; at++) {
    const char = text[at] ?? ''
    if (quote !== '') {
      if (char === '\\') at++
      else if (char === quote) quote = ''
    } else if (/['"`]/.test(char)) quote = char
    else if (/[([{]/.test(char)) depth++
    else if (/[)\]}]/.test(char) && --depth === 0) return text.slice(open + 1, at)
  }
  return ''
}

/** The parts of a list, without comments. */
function splitTop(text: string): readonly string[] {
  const parts: string[] = []
  let depth = 0
  let start = 0
  for (let at = 0; at <= text.length; at++) {
    const char = text[at] ?? ','
    if (/[([{]/.test(char)) depth++
    else if (/[)\]}]/.test(char)) depth--
    const isQuoted = (text.slice(start, at).match(/'/g) ?? []).length % 2 === 1
    if (char !== ',' || (depth > 0 && at < text.length) || (isQuoted && at < text.length)) continue
    parts.push(
      text
        .slice(start, at)
        .replace(/^\s*\/\/.*$/gm, '')
        .trim(),
    )
    start = at + 1
  }
  return parts.filter((part) => part !== '')
}
