/** What a statement text does that the one shared session cannot simply be given. */
export interface Effect {
  /** Channels, folded as PostgreSQL folds them. */
  listen: string[]
  /** Channels; `*` is all of them. */
  unlisten: string[]
  /** The text to run instead, when it must differ. */
  text?: string
}

const SUSPECT = /listen|copy/i
const TOKEN =
  /--[^\n]*|\/\*[\s\S]*?\*\/|\$(\w*)\$[\s\S]*?\$\1\$|[eE]'(?:[^'\\]|\\[\s\S]|'')*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|[\p{L}_][\p{L}\w$]*|[^\s]/gu

// Raised by PostgreSQL itself, so that the transaction's state stays true.
const COPY_REFUSED =
  "do $$ begin raise exception 'COPY FROM STDIN is not supported by the embedded database' " +
  "using errcode = '0A000'; end $$"

/**
 * Reads what a text does to notifications, and replaces what the engine must not run:
 * COPY FROM STDIN (it spins in the engine for ever) raises 0A000, and UNLISTEN names no channel,
 * because the session listens on behalf of every connection.
 *
 * @returns undefined for a text that may run as it is and has no such effect.
 */
export function inspectStatement(text: string): Effect | undefined {
  if (!SUSPECT.test(text)) return undefined
  const effect: Effect = { listen: [], unlisten: [] }
  let replaced = ''
  let copied = 0
  let words: string[] = []
  for (const match of text.matchAll(TOKEN)) {
    const token = match[0]
    if (token.startsWith('--') || token.startsWith('/*')) continue
    if (token === ';') {
      words = []
      continue
    }
    words.push(token.startsWith('"') ? token : token.toLowerCase())
    if (words[0] === 'copy' && words.at(-2) === 'from' && words.at(-1) === 'stdin') {
      return { listen: [], unlisten: [], text: COPY_REFUSED }
    }
    if (words.length !== 2) continue
    if (words[0] === 'listen') effect.listen.push(channel(token))
    if (words[0] === 'unlisten') {
      effect.unlisten.push(channel(token))
      replaced += `${text.slice(copied, match.index)}"-"`
      copied = match.index + token.length
    }
  }
  if (copied > 0) effect.text = replaced + text.slice(copied)
  return effect.listen.length + effect.unlisten.length > 0 ? effect : undefined
}

function channel(token: string): string {
  return token.startsWith('"') ? token.slice(1, -1).replaceAll('""', '"') : token.toLowerCase()
}
