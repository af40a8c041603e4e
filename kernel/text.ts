/**
 * The text behind a percent-encoded one; undefined where a % starts no encoded byte, or the bytes
 * are no text.
 */
export function percentDecoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    // URIError: the percent-encoding is broken.
    return undefined
  }
}

/**
 * A segment of a path, decoded; undefined where it is broken or has a NUL, which can't be stored.
 */
export function decodeSegment(segment: string): string | undefined {
  if (!segment.includes('%')) return segment
  const text = percentDecoded(segment)
  return text?.includes('\0') ? undefined : text
}

/**
 * Whether a text fits a pattern, in which `*` stands for any characters. It searches each piece
 * once, after the one before: a regular expression could stall the thread.
 */
export function fitsPattern(text: string, pattern: string): boolean {
  if (!pattern.includes('*')) return text === pattern
  const [first = '', ...rest] = pattern.split('*')
  const last = rest.pop() ?? ''
  let at = first.length
  for (const part of rest) {
    const found = text.indexOf(part, at)
    if (found < 0) return false
    at = found + part.length
  }
  return text.startsWith(first) && text.endsWith(last) && text.length >= at + last.length
}

/** A text without the characters at its end that `dropped` matches; `/-+$/` would be quadratic. */
export function trimEnd(text: string, dropped: RegExp): string {
  let end = text.length
  while (end > 0 && dropped.test(text.charAt(end - 1))) end--
  return text.slice(0, end)
}

/** The same at both ends. */
export function trimBoth(text: string, dropped: RegExp): string {
  let start = 0
  while (start < text.length && dropped.test(text.charAt(start))) start++
  return trimEnd(text.slice(start), dropped)
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** True for text that a `uuid` column can hold, in the usual form. */
export function isUuid(text: string): boolean {
  return UUID.test(text)
}

/** Control characters, line separators, and characters that turn the direction of text. */
const CONTROLS = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu

/**
 * Escapes characters that control a terminal or change the order in which text is shown. The
 * escape, such as `\u001b`, means the same character in a string of JSON.
 */
export function escapeControls(text: string): string {
  return text.replace(
    CONTROLS,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/**
 * Characters that change the order in which the text after them is shown, up to their end or the
 * end of the line. Marks of one direction (U+200E, U+200F, U+061C) turn nothing else: texts of
 * right-to-left scripts need them.
 */
export const TURNS_TEXT = /[\u202a-\u202e\u2066-\u2069]/

/**
 * Text of `max` bytes at most, never cut within a character. A longer text keeps its beginning and
 * ends in `…`; or it keeps `end` bytes of its end as well, and a line in between says how much is
 * missing.
 */
export function cutBytes(text: string, max: number, end = 0): string {
  const bytes = Buffer.from(text)
  if (bytes.length <= max) return text
  const mark = end === 0 ? '…' : `\n(${bytes.length - max} bytes are cut off)\n`
  const first = characterAt(bytes, max - end - Buffer.byteLength(mark))
  const last = end === 0 ? '' : bytes.toString('utf8', characterAt(bytes, bytes.length - end, 1))
  return `${bytes.toString('utf8', 0, first)}${mark}${last}`
}

/** The nearest place before (or with step 1, after) a place at which a character begins. */
function characterAt(bytes: Buffer, place: number, step: 1 | -1 = -1) {
  let at = place
  while (((bytes[at] ?? 0) & 0xc0) === 0x80) at += step
  return at
}

/**
 * Reads a response's body up to a number of bytes. The rest, which may be endless, is not read.
 */
export async function readText(
  { body }: { body: AsyncIterable<Uint8Array> | null },
  limit: number,
) {
  const chunks: Uint8Array[] = []
  let size = 0
  if (body !== null) {
    for await (const chunk of body) {
      chunks.push(chunk)
      size += chunk.length
      if (size > limit) break
    }
  }
  return { text: Buffer.concat(chunks).toString('utf8', 0, limit), cut: size > limit }
}
