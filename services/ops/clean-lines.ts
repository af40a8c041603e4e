import type { StoredLine } from '../../db/ops/agent/sessions.ts'
import { cutBytes } from '../../kernel/text.ts'
import type { Redaction } from './redact.ts'

/** A line of a session's output, before it has a number. */
export type CleanLine = Omit<StoredLine, 'seq'>

/** A line as it was written; `cut` if its text is only the beginning. */
type RawLine = CleanLine & { cut: boolean }

/** A line that has not ended. */
type OpenLine = Omit<RawLine, 'at'>

/** Whose line it is: what it says belongs to a tool call, or to none. */
type Origin = Pick<OpenLine, 'kind' | 'call'>

/** Bytes of a line (decisions.md section 5, Output). */
const MAX_LINE_BYTES = 16 * 1024
/* oxlint-disable no-control-regex, no-misleading-character-class */
/** What may hide or change the rest of a text in a terminal or on a page. */
const NOISE_PATTERNS = [
  // Control sequences, such as a colour.
  /(?:\u001b\[|\u009b)[0-?]*[ -/]*[@-~]/u,
  // Commands to the terminal, such as a title.
  /\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)?/u,
  // Other escape sequences.
  /\u001b(?:[ -/]+[0-~]|[0-Z\\-~])/u,
  // Controls.
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/u,
  // Bidirectional, zero-width and other invisible characters.
  /[\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/u,
  /[\u{e0000}-\u{e007f}]/u,
]
/* oxlint-enable no-control-regex, no-misleading-character-class */
const NOISE = new RegExp(NOISE_PATTERNS.map(({ source }) => source).join('|'), 'gu')

/** Splits text into lines. A line without an end waits for its rest. */
export function createLineSplitter(redact: Redaction, pass: (line: OpenLine) => void) {
  let open: OpenLine | undefined
  /** The text so far ends with CR; its LF may come with the next piece. */
  let endsWithReturn = false

  /** An endless line takes no more memory than is needed to find a secret across its cut. */
  function extend(origin: Origin, more: string) {
    const text = (open?.text ?? '') + more
    const max = MAX_LINE_BYTES * 4 + redact.longest()
    open = { ...origin, text: text.slice(0, max), cut: open?.cut === true || text.length > max }
  }

  function end() {
    if (open !== undefined) pass(open)
    open = undefined
  }

  return {
    write(kind: string, text: string, call: number | null = null) {
      const origin = { kind, call }
      if (open?.kind !== kind || open.call !== call) end()
      const more = endsWithReturn && text.startsWith('\n') ? text.slice(1) : text
      if (text !== '') endsWithReturn = text.endsWith('\r')
      // A terminal would overwrite the text before a CR. Here it ends a line, so that nothing is
      // hidden.
      const lines = more.split(/\r\n|\n|\r/)
      const rest = lines.pop() ?? ''
      for (const line of lines) {
        extend(origin, line)
        end()
      }
      if (rest !== '') extend(origin, rest)
    },
    endLine() {
      endsWithReturn = false
      end()
    },
  }
}

/**
 * Removes secrets and terminal codes from lines on their way to the store. An encoded secret may
 * be wrapped over several lines. So lines are redacted together, and the last lines are held back
 * as long as a secret that begins in them may continue.
 */
export function createLineCleaner(redact: Redaction) {
  let lines: RawLine[] = []

  /** Secrets are redacted before lines are cut: half of a secret is not found. */
  function cutLine({ cut, text, ...line }: RawLine): CleanLine {
    if (!cut) return { ...line, text: cutBytes(text, MAX_LINE_BYTES) }
    // The end of a cut line may be the beginning of a secret. No database takes half a character.
    const whole = text.slice(0, -redact.longest() || undefined).toWellFormed()
    return { ...line, text: cutBytes(`${whole}…`, MAX_LINE_BYTES) }
  }

  return {
    add(line: RawLine) {
      // Before and after noise is removed: noise may separate the words of a secret.
      lines.push({ ...line, text: redact(line.text).replaceAll(NOISE, '') })
    },
    /**
     * Gives clean lines in order: all, or only those whose secrets can't continue in lines to
     * come.
     */
    take(all: boolean) {
      if (lines.length === 0) return []
      const texts = redact(lines.map(({ text }) => text).join('\n')).split('\n')
      const clean = lines.map((line, i) => ({ ...line, text: texts[i] ?? '' }))
      let taken = clean.length
      for (let held = all ? 0 : redact.longest(); held > 0 && taken > 0; taken--) {
        held -= (texts[taken - 1]?.length ?? 0) + 1
      }
      lines = clean.slice(taken)
      return clean.slice(0, taken).map(cutLine)
    },
  }
}
