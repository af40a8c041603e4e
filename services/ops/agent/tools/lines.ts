import * as Type from '../../../../kernel/schema.ts'
import { done, Text, type ToolResult } from './tool.ts'

// Lines of logs and files, and pages of longer texts, as an answer shows them.

/** Characters of text in an answer, less than a reply may have: redaction can lengthen it. */
export const MAX_TEXT = 12_000
/** Characters of one line. */
const MAX_LINE = 2_000
/** How many of the newest lines of a log are searched for a text, in as many bytes. */
export const SEARCHED_LINES = 10_000
export const SEARCHED_BYTES = 4 * 1024 * 1024

/**
 * A text that lines must have. It is no regular expression: with one that a model wrote, a log
 * that a stranger wrote could stall the thread.
 */
export const Contains = Type.Optional(
  Text(200, 'Only lines that have this text, letter by letter; it is no pattern'),
)
export const LineCount = Type.Optional(Type.Integer({ minimum: 1, maximum: 500, default: 100 }))
export const Minutes = Type.Optional(
  Type.Integer({ minimum: 1, maximum: 100_000, description: 'How far back' }),
)

/** Where a page of a longer text begins. */
export const Offset = Type.Optional(
  Type.Integer({
    minimum: 0,
    default: 0,
    description: 'From the last line of the page before',
  }),
)

/** Lines that were read, oldest first, and which of them are wanted. */
interface FoundLines {
  /** Without secrets: what is searched for must tell nothing about them. */
  lines: readonly string[]
  contains: string | undefined
  most: number
  /** Whether older lines are missing because there were too many bytes. */
  isCut: boolean
  /** The number of the first line, if lines are shown with their numbers. */
  from?: number
}

/** The newest of the lines that are wanted, as many as fit. What is missing is said before them. */
export function linesReply({ lines, contains, most, isCut, from }: FoundLines): ToolResult {
  const matching = lines.flatMap((line, at) => {
    if (contains !== undefined && !line.includes(contains)) return []
    return [from === undefined ? line : `${from + at}: ${line}`]
  })
  const shown = newestWithin(matching.slice(-most))
  const isPart = isCut || lines.length >= SEARCHED_LINES
  const searched = `${isPart ? 'the newest ' : ''}${lines.length} lines`
  if (matching.length === 0) {
    return done(contains === undefined ? 'No lines.' : `Not in ${searched}.`)
  }
  const left = matching.length - shown.length
  const notes = [
    left > 0 && `older lines left out: ${left}`,
    contains !== undefined && `searched: ${searched}`,
    contains === undefined && isCut && 'older lines are too long to be shown',
  ].filter((note) => note !== false)
  const head = notes.length === 0 ? [] : [`(${notes.join('; ')})`]
  return done([...head, ...shown].join('\n'))
}

/** The page of a text that begins at `offset`. Its last line is the call for the next page. */
export function pageReply(
  text: string,
  offset: number,
  callForNext: (next: number) => string,
): ToolResult {
  const next = offset + MAX_TEXT
  const page = text.slice(offset, next).toWellFormed()
  if (next >= text.length) return done(page || 'Nothing follows.')
  return done(`${page}\n(for the next page call ${callForNext(next)})`)
}

/** As many lines from the beginning as fit into `max` characters; at least the first one. */
export function firstWithin(lines: readonly string[], max: number): readonly string[] {
  let length = 0
  const end = lines.findIndex((line, at) => {
    length += line.length + 1
    return length > max && at > 0
  })
  return end < 0 ? lines : lines.slice(0, end)
}

/** The last lines that fit into an answer. */
function newestWithin(lines: readonly string[]): readonly string[] {
  const shown: string[] = []
  let length = 0
  for (const line of lines.toReversed()) {
    const isLong = line.length > MAX_LINE
    const text = isLong ? `${line.slice(0, MAX_LINE).toWellFormed()}…` : line
    length += text.length + 1
    if (length > MAX_TEXT) break
    shown.unshift(text)
  }
  return shown
}
