/** How much of the first line is read at most to tell the format and the separator. */
const HEAD_BYTES = 64 * 1024

/** A file that is text: its beginning, and all its bytes as UTF-8. */
interface OpenedText {
  head: string
  bytes: AsyncIterable<Uint8Array>
}

/**
 * Reads the beginning of a file. A byte order mark of UTF-16, which spreadsheets write, is
 * followed; everything else is UTF-8.
 */
export async function openText(chunks: AsyncIterable<Uint8Array>): Promise<OpenedText> {
  const reader = chunks[Symbol.asyncIterator]()
  let first = Buffer.alloc(0)
  let isWhole = false
  while (!hasLine(first) && first.length < HEAD_BYTES && !isWhole) {
    const next = await reader.next()
    if (next.done === true) isWhole = true
    else first = Buffer.concat([first, next.value])
  }
  const encoding = encodingOf(first)
  const head = new TextDecoder(encoding).decode(first)

  async function* all(): AsyncGenerator<Uint8Array> {
    yield first
    if (!isWhole) yield* { [Symbol.asyncIterator]: () => reader }
  }
  return { head, bytes: encoding === 'utf-8' ? all() : toUtf8(all(), encoding) }
}

/** Whether the first line with a text has ended: what comes from a pipe may go on much later. */
function hasLine(bytes: Buffer): boolean {
  return bytes.toString('latin1').trimStart().includes('\n')
}

function encodingOf([one, two]: Uint8Array): 'utf-8' | 'utf-16le' | 'utf-16be' {
  if (one === 0xff && two === 0xfe) return 'utf-16le'
  return one === 0xfe && two === 0xff ? 'utf-16be' : 'utf-8'
}

async function* toUtf8(
  chunks: AsyncIterable<Uint8Array>,
  encoding: string,
): AsyncGenerator<Uint8Array> {
  const decoder = new TextDecoder(encoding)
  for await (const chunk of chunks) yield Buffer.from(decoder.decode(chunk, { stream: true }))
  yield Buffer.from(decoder.decode())
}
