import { createPieces, type CollectedText } from './pieces.ts'
import { MAX_ROW_BYTES } from './rows.ts'

/** A part of a stream of JSON texts: an item of a list, or the text around the items. */
interface JsonPart extends CollectedText {
  kind: 'item' | 'page'
}

/** What stands around a list of links is far smaller. */
const MAX_PAGE_BYTES = 64 * 1024
const MAX_DEPTH = 16

const QUOTE = 0x22
const COMMA = 0x2c
const BACKSLASH = 0x5c
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d]

/** Where in a JSON text a byte stands; `escaped`: behind a backslash in a string. */
type Place = 'plain' | 'string' | 'escaped'

/**
 * Splits answers of an API, one after the other, into the objects of their lists as the bytes come,
 * holding one at a time. Objects within such an object belong to it. A page comes after its items,
 * as a JSON text whose lists are empty. Reading ends where the brackets no longer tell what is
 * what.
 */
export async function* readItems(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<JsonPart> {
  /** The brackets around an item, outermost first. */
  let around: number[] = []
  /** How many brackets of the item that is read are open; 0 outside of an item. */
  let depth = 0
  let place: Place = 'plain'
  /** The next comma separates items: it is left out of the page. */
  let endsItem = false
  const item = createPieces(MAX_ROW_BYTES)
  const page = createPieces(MAX_PAGE_BYTES)

  for await (const chunk of chunks) {
    let from = 0
    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at] ?? 0
      if (place !== 'plain' || byte === QUOTE) {
        place = placeAfter(place, byte)
      } else if (depth > 0) {
        if (byte === OPEN_OBJECT || byte === OPEN_LIST) depth += 1
        else if (byte === CLOSE_OBJECT || byte === CLOSE_LIST) depth -= 1
        if (depth > 0) continue
        item.add(chunk.subarray(from, at + 1))
        yield { kind: 'item', ...item.take() }
        from = at + 1
        endsItem = true
      } else if (byte === OPEN_OBJECT && around.at(-1) === OPEN_LIST) {
        page.add(chunk.subarray(from, at))
        from = at
        depth = 1
        endsItem = false
      } else if (byte === COMMA && endsItem) {
        page.add(chunk.subarray(from, at))
        from = at + 1
        endsItem = false
      } else if (byte === OPEN_OBJECT || byte === OPEN_LIST) {
        around = [...around, byte]
        if (around.length > MAX_DEPTH) {
          yield ended('has too many brackets in one another')
          return
        }
      } else if (byte === CLOSE_OBJECT || byte === CLOSE_LIST) {
        endsItem = false
        around = around.slice(0, -1)
        if (around.length > 0) continue
        page.add(chunk.subarray(from, at + 1))
        from = at + 1
        yield { kind: 'page', ...page.take() }
      }
    }
    const current = depth > 0 ? item : page
    current.add(chunk.subarray(from))
  }
  if (depth > 0 || around.length > 0) yield ended('ends in the middle of an answer')
  else if (!page.isBlank()) yield { kind: 'page', ...page.take() }
}

function ended(problem: string): JsonPart {
  return { kind: 'page', text: '', problem: `${problem}; nothing after it was read` }
}

function placeAfter(place: Place, byte: number): Place {
  if (place === 'plain' || place === 'escaped') return 'string'
  if (byte === BACKSLASH) return 'escaped'
  return byte === QUOTE ? 'plain' : 'string'
}
