import type { CleanLine } from './clean-lines.ts'

/** Bounds the output of one session. */
export interface Bound {
  /** Passes a line on, or holds it with the last ones when there is no room for it. */
  add(line: CleanLine): void
  /** Passes the last lines on; none is added after it. */
  end(): void
}

/** Bytes that are kept of a session's output; of more, also the last ones: they say how it ended. */
const KEPT_BYTES = 8 * 1024 * 1024
const KEPT_END_BYTES = 64 * 1024
/** About what a row and its line in the file take beside the text. */
const LINE_OVERHEAD = 100
const CUT = `Output too long: cut here. Its first ${KEPT_BYTES >> 20} MiB and its last ${KEPT_END_BYTES >> 10} KiB are kept.`

/** Passes on the beginning of an output and, if it is too long, its end; a line of its own says where it is cut. */
export function createBound(pass: (line: CleanLine) => void): Bound {
  let room = KEPT_BYTES
  let last: CleanLine[] | undefined
  let lastBytes = 0
  let omitted = 0

  return {
    add(line) {
      const bytes = bytesOf(line)
      if (last === undefined && bytes <= room) {
        room -= bytes
        return pass(line)
      }
      if (last === undefined) {
        last = []
        pass({ ...line, kind: 'system', text: CUT })
      }
      last.push(line)
      lastBytes += bytes
      for (let [first] = last; first !== undefined && lastBytes > KEPT_END_BYTES; [first] = last) {
        last.shift()
        lastBytes -= bytesOf(first)
        omitted++
      }
    },
    end() {
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
