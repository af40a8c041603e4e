import type { Line } from '../../../db/ops/sessions.ts'
import { cutBytes } from '../../../kernel/text.ts'
import type { Redaction } from '../redact.ts'

/** A line of a session's output, before it has a number. */
type CleanLine = Omit<Line, 'seq'>

/** A line as it was written; `cut` if its text is only the beginning. */
interface RawLine extends CleanLine {
  readonly cut: boolean
}

/** Bytes of a line (decisions.md section 5, Output). */
export const MAX_LINE_BYTES = 16 * 1024
/**
 * Bytes of a session's output. Of a longer one, the last bytes are kept as well: they say how it
 * ended.
 */
const MAX_BYTES = 8 * 1024 * 1024
const MAX_END_BYTES = 64 * 1024
/** About what a row and its line in the file need beside the text. */
const LINE_OVERHEAD = 100
const CUT = `Output too long: cut here. Its first ${MAX_BYTES >> 20} MiB and its last ${MAX_END_BYTES >> 10} KiB are kept.`
/**
 * Terminal escape sequences, then controls, bidirectional, zero-width and other invisible
 * characters.
 */
const NOISE =
  // oxlint-disable-next-line no-control-regex, no-misleading-character-class
  /(?:\u001b\[|\u009b)[0-?]*[ -/]*[@-~]|\u001b(?:\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[ -/]+[0-~]|[0-Z\\-~])|[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu

/**
 * Removes secrets and terminal codes from lines on their way to the store. An encoded secret may be
 * wrapped over several lines. So lines are redacted together, and the last lines are held back as
 * long as a secret that begins in them may continue.
 */
export function createLineCleaner(redact: Redaction) {
  let lines: RawLine[] = []
  let added = 0

  /** Secrets are redacted before lines are cut: half of a secret is not found. */
  function cutLine({ at, kind, text, cut }: RawLine): CleanLine {
    if (!cut) return { at, kind, text: cutBytes(text, MAX_LINE_BYTES) }
    // The end of a cut line may be the beginning of a secret. No database takes half a character.
    const whole = text.slice(0, -redact.longest() || undefined).toWellFormed()
    return { at, kind, text: cutBytes(`${whole}…`, MAX_LINE_BYTES) }
  }

  return {
    /** How many lines were added since the last `take`. */
    get added() {
      return added
    },
    add(line: RawLine): void {
      // Before and after noise is removed: it may stand between the words of a secret.
      lines.push({ ...line, text: redact(line.text).replaceAll(NOISE, '') })
      added++
    },
    /**
     * Gives clean lines in order: all, or only those whose secrets can't continue in lines to come.
     */
    take(all: boolean): readonly CleanLine[] {
      added = 0
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

/**
 * Passes on the beginning of an output and, if it is too long, its end. A system line says where it
 * is cut.
 */
export function createOutputLimit(pass: (line: CleanLine) => void) {
  let bytesLeft = MAX_BYTES
  let last: CleanLine[] | undefined
  let lastBytes = 0
  let omitted = 0

  return {
    /** Passes a line on; over the limit, holds it among the last ones. */
    add(line: CleanLine): void {
      const bytes = bytesOf(line)
      if (last === undefined && bytes <= bytesLeft) {
        bytesLeft -= bytes
        return pass(line)
      }
      if (last === undefined) {
        last = []
        pass({ ...line, kind: 'system', text: CUT })
      }
      last.push(line)
      lastBytes += bytes
      for (let [first] = last; first !== undefined && lastBytes > MAX_END_BYTES; [first] = last) {
        last.shift()
        lastBytes -= bytesOf(first)
        omitted++
      }
    },
    /** Passes the last lines on. */
    end(): void {
      const [first, ...rest] = last ?? []
      if (first === undefined) return
      pass({ ...first, kind: 'system', text: `${omitted} lines are left out here.` })
      for (const line of [first, ...rest]) pass(line)
    },
  }
}

function bytesOf({ text }: CleanLine): number {
  return Buffer.byteLength(text) + LINE_OVERHEAD
}
