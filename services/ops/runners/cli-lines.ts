/** Bytes on their way to becoming lines. */
export interface LineSplitter {
  push(chunk: Buffer): void
  /** Gives the line that has no end. */
  end(): void
}

const LINE_END = 0x0a

/**
 * Splits a stream into lines, whatever its chunks: a character is never cut by a chunk's border. Of a
 * line with more bytes than `most` the beginning is given, so that no line takes more memory.
 */
export function splitLines(most: number, take: (line: string) => void): LineSplitter {
  let chunks: Buffer[] = []
  let size = 0

  function keep(bytes: Buffer): void {
    if (size < most) chunks.push(Buffer.from(bytes.subarray(0, most - size)))
    size += bytes.length
  }
  function give(): void {
    const line = Buffer.concat(chunks).toString('utf8')
    chunks = []
    size = 0
    take(line)
  }

  return {
    push(chunk) {
      let from = 0
      for (let at = chunk.indexOf(LINE_END); at >= 0; at = chunk.indexOf(LINE_END, from)) {
        keep(chunk.subarray(from, at))
        give()
        from = at + 1
      }
      if (from < chunk.length) keep(chunk.subarray(from))
    },
    end() {
      if (size > 0) give()
    },
  }
}
