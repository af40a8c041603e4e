import { cutAt } from '../cut.ts'
import type { Redaction } from '../redact.ts'

/** A line of a session's output. */
export interface CleanLine {
  readonly at: Date
  readonly kind: string
  readonly text: string
}

/** A line as it came; `cut` when its text is only the beginning. */
export interface RawLine extends CleanLine {
  readonly cut: boolean
}

/** Lines on their way to the store. They leave without secrets and without what a terminal acts on. */
export interface LineCleaner {
  /** How many lines were added since the last `take`. */
  readonly added: number
  add(line: RawLine): void
  /** Gives clean lines, in order: all, or only those whose secrets can't go on in lines to come. */
  take(all: boolean): readonly CleanLine[]
}

/** Bytes of a line that are kept (decisions.md section 5, Output). */
export const LINE_BYTES = 16 * 1024
/** Escape sequences of terminals, then controls, bidirectional, zero-width and other invisible characters. */
const NOISE =
  // oxlint-disable-next-line no-control-regex, no-misleading-character-class
  /(?:\u001b\[|\u009b)[0-?]*[ -/]*[@-~]|\u001b(?:\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[ -/]+[0-~]|[0-Z\\-~])|[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu

/**
 * An encoded secret may be wrapped over several lines. So lines are redacted together, and the last ones
 * are held back for as long as a secret that begins in them could still go on.
 */
export function createLineCleaner(redact: Redaction): LineCleaner {
  let lines: RawLine[] = []
  let added = 0

  /** Secrets go before lines are cut: half of one is not found. */
  function cutLine({ at, kind, text, cut }: RawLine): CleanLine {
    if (!cut) return { at, kind, text: cutAt(text, LINE_BYTES) }
    // Its end may be the beginning of a secret. Half a character, which that leaves, no database keeps.
    const whole = text.slice(0, -redact.longest() || undefined).toWellFormed()
    return { at, kind, text: cutAt(`${whole}…`, LINE_BYTES) }
  }

  return {
    get added() {
      return added
    },
    add(line) {
      // Once before noise goes, which may stand between the words of a secret, and once after it.
      lines.push({ ...line, text: redact(line.text).replaceAll(NOISE, '') })
      added++
    },
    take(all) {
      added = 0
      if (lines.length === 0) return []
      const texts = redact(lines.map(({ text }) => text).join('\n')).split('\n')
      const clean = lines.map((line, at) => ({ ...line, text: texts[at] ?? '' }))
      let taken = clean.length
      for (let held = all ? 0 : redact.longest(); held > 0 && taken > 0; taken--) {
        held -= (texts[taken - 1]?.length ?? 0) + 1
      }
      lines = clean.slice(taken)
      return clean.slice(0, taken).map(cutLine)
    },
  }
}
