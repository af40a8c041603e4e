import { jsonRow, MAX_ROW_BYTES, unreadable, type Row } from './rows.ts'

const LF = 0x0a

/** Reads a JSON object from each line, as golink exports them. Blank lines are left out. */
export async function* readJsonLines(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Row> {
  let line = 0
  for await (const { text, problem } of splitLines(bytes)) {
    line += 1
    if (problem !== undefined) yield unreadable(line, problem)
    else if (text.trim() !== '') yield jsonRow(line, text)
  }
}

/** Splits bytes into lines as they come, holding one at a time. */
async function* splitLines(
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<{ text: string; problem?: string }> {
  let pieces: Uint8Array[] = []
  let size = 0

  function take(piece: Uint8Array): void {
    size += piece.length
    // Only the length of a line that is too long is kept.
    pieces = size > MAX_ROW_BYTES ? [] : [...pieces, piece]
  }
  function finish() {
    const read =
      size > MAX_ROW_BYTES
        ? { text: '', problem: 'is longer than 1 MiB' }
        : decode(Buffer.concat(pieces))
    pieces = []
    size = 0
    return read
  }

  for await (const chunk of chunks) {
    let from = 0
    for (let at = chunk.indexOf(LF); at >= 0; at = chunk.indexOf(LF, from)) {
      take(chunk.subarray(from, at))
      from = at + 1
      yield finish()
    }
    take(chunk.subarray(from))
  }
  yield finish()
}

function decode(bytes: Buffer): { text: string; problem?: string } {
  try {
    return { text: new TextDecoder('utf-8', { fatal: true }).decode(bytes) }
  } catch {
    return { text: '', problem: 'is not UTF-8' }
  }
}
