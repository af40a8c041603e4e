import { createPieces } from './pieces.ts'
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
async function* splitLines(chunks: AsyncIterable<Uint8Array>) {
  const line = createPieces(MAX_ROW_BYTES)
  for await (const chunk of chunks) {
    let from = 0
    for (let at = chunk.indexOf(LF); at >= 0; at = chunk.indexOf(LF, from)) {
      line.add(chunk.subarray(from, at))
      from = at + 1
      yield line.take()
    }
    line.add(chunk.subarray(from))
  }
  yield line.take()
}
