import type { CleanLine } from '../../clean-lines.ts'

/**
 * Bytes of a session's output. Of a longer one, the last bytes are kept as well: they say how it
 * ended.
 */
const MAX_BYTES = 8 * 1024 * 1024
const MAX_END_BYTES = 64 * 1024
/** About what a row and its line in the file need beside the text. */
const LINE_OVERHEAD = 100
const CUT =
  `Output too long: cut here. Its first ${MAX_BYTES >> 20} MiB ` +
  `and its last ${MAX_END_BYTES >> 10} KiB are kept.`

/**
 * Passes on the beginning of an output and, if it is too long, its end. A system line says where
 * it is cut.
 */
export function createOutputLimit(pass: (line: CleanLine) => void) {
  let bytesLeft = MAX_BYTES
  const last: CleanLine[] = []
  let lastBytes = 0
  let omitted = 0

  return {
    /** Passes a line on; over the limit, holds it among the last ones. */
    add(line: CleanLine) {
      const bytes = bytesOf(line)
      const wasCut = bytesLeft < 0
      bytesLeft -= bytes
      if (bytesLeft >= 0) return pass(line)
      if (!wasCut) pass({ ...line, kind: 'system', call: null, text: CUT })
      last.push(line)
      lastBytes += bytes
      for (let [first] = last; first !== undefined && lastBytes > MAX_END_BYTES; [first] = last) {
        last.shift()
        lastBytes -= bytesOf(first)
        omitted++
      }
    },
    /** Passes the last lines on. */
    end() {
      const [first] = last
      if (first === undefined) return
      const text = `${omitted} lines are left out here.`
      pass({ ...first, kind: 'system', call: null, text })
      for (const line of last) pass(line)
    },
  }
}

function bytesOf({ text }: CleanLine) {
  return Buffer.byteLength(text) + LINE_OVERHEAD
}
