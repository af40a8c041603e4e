/** A piece of an imported file that stands for one link: its bytes, or why it can't be read. */
export type ImportRecord =
  | { readonly line: number; readonly text: string }
  | { readonly line: number; readonly problem: string }

/** A link is far smaller; what is larger is no record, but a file of another kind or an open quote. */
const LONGEST = 1024 * 1024
const [LF, QUOTE, COMMA] = [0x0a, 0x22, 0x2c]

/** Where in a record of CSV a byte stands; `closing`: after a quote that ends the cell, unless a second one follows. */
type Place = 'start' | 'plain' | 'quoted' | 'closing'

/**
 * Splits a stream of bytes into records as they come, without holding more than one: at every line end
 * or, with `quotes`, at every line end outside of a quoted cell (RFC 4180). Blank lines count as lines
 * and are left out. After a quoted cell that never ends nothing can be trusted, so reading ends there.
 */
export async function* readRecords(
  chunks: AsyncIterable<Uint8Array>,
  quotes: boolean,
): AsyncGenerator<ImportRecord> {
  let place: Place = 'start'
  let pieces: Uint8Array[] = []
  let [size, line, first] = [0, 1, 1]

  function take(piece: Uint8Array): void {
    size += piece.length
    // Of a record that is too long nothing is kept but its length.
    pieces = size > LONGEST ? [] : [...pieces, piece]
  }
  function finish(): ImportRecord {
    const record =
      size > LONGEST
        ? { line: first, problem: 'is longer than 1 MiB' }
        : decode(first, Buffer.concat(pieces))
    ;[pieces, size, place, first] = [[], 0, 'start', line + 1]
    return record
  }

  for await (const chunk of chunks) {
    let from = 0
    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at]
      if (byte === LF && place !== 'quoted') {
        take(chunk.subarray(from, at))
        from = at + 1
        const record = finish()
        if (!isBlank(record)) yield record
      } else if (quotes) place = next(place, byte)
      if (byte === LF) line += 1
    }
    take(chunk.subarray(from))
    if (place === 'quoted' && size > LONGEST) break
  }
  if (place === 'quoted') {
    yield { line: first, problem: 'a quoted field is never closed; nothing after it was read' }
    return
  }
  const last = finish()
  if (!isBlank(last)) yield last
}

function next(place: Place, byte: number | undefined): Place {
  if (place === 'quoted') return byte === QUOTE ? 'closing' : 'quoted'
  if (byte === COMMA) return 'start'
  return byte === QUOTE && place !== 'plain' ? 'quoted' : 'plain'
}

function decode(line: number, bytes: Buffer): ImportRecord {
  try {
    // A mark at the start of the file has done its duty; elsewhere it is a character.
    const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: line > 1 })
    return { line, text: decoder.decode(bytes).replace(/\r$/, '') }
  } catch {
    return { line, problem: 'is not UTF-8' }
  }
}

function isBlank(record: ImportRecord): boolean {
  return 'text' in record && record.text.trim() === ''
}
