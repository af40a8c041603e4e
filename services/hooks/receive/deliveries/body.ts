import { isAscii, isUtf8 } from 'node:buffer'
import { charsetOf, markedCharset } from '../../../../kernel/http/charset.ts'
import { headerParameter, mediaType } from '../../../../kernel/http/headers.ts'
import { isList, isObject, parseJson } from '../../../../kernel/json.ts'
import { formJson, multipartJson, type FieldsJson } from './body-fields.ts'
import { decode, encodingsIn } from './encodings.ts'
import type { Content } from './fields.ts'

// Reading a body: what is shown, searched, filtered and put into templates of the bytes that a
// sender sent. They are verified, kept and sent on as they came.

/** A body as it is read. */
export interface ReadBody {
  /** JSON or another text in UTF-8; of a body that can't be read, its bytes. */
  bytes: Buffer
  /** `sent`: the bytes are the body's; `read`: they are another text; `unreadable`: see `how`. */
  state: 'sent' | 'read' | 'unreadable'
  /** How it was read, such as `gzip, form`, or in one word why it can't be; null as it was sent. */
  how: string | null
}

/** What tells how to read a body. */
interface BodyHeaders {
  contentType: string | undefined
  contentEncoding: string | undefined
}

/** What the columns of an event hold; null of a body that is read as it was sent. */
interface StoredReading {
  reading: Buffer | null
  read_as: string | null
}

/** Bytes that are kept of what was read, as many as a search looks at. */
const MAX_KEPT = 1024 * 1024

/** Creates what reads bodies; encoded ones one after the other, as each may need 25 MiB. */
export function createBodyReader() {
  let last: Promise<unknown> = Promise.resolve()
  return async (body: Buffer, headers: BodyHeaders): Promise<ReadBody> => {
    const encodings = body.length === 0 ? [] : encodingsIn(headers.contentEncoding)
    if (encodings.length === 0) return readText(body, headers, [])
    const decoding = last.then(() => decode(body, encodings))
    last = decoding
    const { bytes, problem } = await decoding
    if (bytes !== undefined) return readText(bytes, headers, encodings)
    // Proxies that decode a body may leave the header.
    return isUtf8(body) ? readText(body, headers, []) : unreadable(body, problem)
  }
}
export type BodyReader = ReturnType<typeof createBodyReader>

function unreadable(body: Buffer, how: string): ReadBody {
  return { bytes: body, state: 'unreadable', how }
}

/** Reads bytes without their encodings, whose names begin what is said of how. */
function readText(
  bytes: Buffer,
  { contentType }: BodyHeaders,
  encodings: readonly string[],
): ReadBody {
  const fields = readFields(bytes, contentType)
  if (fields !== undefined) {
    const { text, isWhole, how } = fields
    const all = [...encodings, how, ...(isWhole ? [] : ['cut'])]
    return { bytes: Buffer.from(text), state: 'read', how: all.join(', ') }
  }
  const converted = toUtf8(bytes, contentType)
  if (converted === undefined) return unreadable(bytes, 'damaged')
  const { charset } = converted
  const list = listOfLines(converted.bytes, mediaType(contentType))
  const how = [...encodings, charset ?? [], list === undefined ? [] : 'ndjson'].flat()
  if (how.length === 0) return { bytes, state: 'sent', how: null }
  if (!isUtf8(converted.bytes)) return unreadable(bytes, 'binary')
  return { bytes: list ?? converted.bytes, state: 'read', how: how.join(', ') }
}

/** Text in UTF-8, and the charset that it came in, where that is another one. */
interface Converted {
  bytes: Buffer
  charset?: string
}

/** Text as UTF-8 without a byte order mark; undefined where the bytes are not of their charset. */
function toUtf8(bytes: Buffer, contentType: string | undefined): Converted | undefined {
  const isMarked = markedCharset(bytes) !== undefined
  const charset = charsetOf(bytes, contentType) ?? 'utf-8'
  if (!isMarked && isUtf8Already(bytes, charset, mediaType(contentType))) return { bytes }
  try {
    const text = new TextDecoder(charset, { fatal: true }).decode(bytes)
    return { bytes: Buffer.from(text), charset }
  } catch {
    // TypeError: bytes that this charset does not have.
    return undefined
  }
}

/** JSON is UTF-8 by RFC 8259: a library may name another charset by habit. */
function isUtf8Already(bytes: Buffer, charset: string, type: string): boolean {
  if (charset === 'utf-8') return true
  return !charset.startsWith('utf-16') && (/json$/.test(type) ? isUtf8(bytes) : isAscii(bytes))
}

/** The fields of a form. JSON whose type says form is JSON: programs often leave the type alone. */
function readFields(
  bytes: Buffer,
  contentType: string | undefined,
): (FieldsJson & { how: string }) | undefined {
  const type = mediaType(contentType)
  if (type === 'application/x-www-form-urlencoded') {
    const isJson = /^\s*\{/.test(bytes.toString('latin1', 0, 100)) && isObject(jsonOf(bytes))
    return isJson ? undefined : { ...formJson(bytes, charsetOf(bytes, contentType)), how: 'form' }
  }
  const boundary = headerParameter(contentType, 'boundary')
  if (type !== 'multipart/form-data' || boundary === undefined) return undefined
  const json = multipartJson(bytes, boundary)
  return json && { ...json, how: 'multipart' }
}

function jsonOf(bytes: Buffer): unknown {
  return parseJson(bytes.toString('utf8'))
}

/** Types of text with a line of JSON each. */
const LINES = /^(?:application|text)\/(?:x-)?(?:ndjson|jsonl|jsonlines|json-lines)$/

/** Lines of JSON as a list; undefined for all else. Without a type, two lines with an object each are enough. */
function listOfLines(bytes: Buffer, type: string): Buffer | undefined {
  if (bytes.length > MAX_KEPT) return undefined
  const isLikely = LINES.test(type) || bytes.includes('}\n{') || bytes.includes('}\r\n{')
  if (!isLikely || !isUtf8(bytes)) return undefined
  const lines = bytes
    .toString('utf8')
    .split('\n')
    .filter((line) => line.trim() !== '')
  if (lines.some((line) => parseJson(line) === undefined)) return undefined
  return Buffer.from(`[${lines.map((line) => line.trim()).join(',\n')}]`)
}

/** What a body holds: a JSON object, a form, or a list; undefined for any other. */
export function contentOf({ bytes, state }: ReadBody): Content | undefined {
  const value = state === 'unreadable' ? undefined : jsonOf(bytes)
  return isObject(value) || isList(value) ? value : undefined
}

/** What is kept of a reading: its beginning, so that a longer one is no JSON, as a longer body is. */
export function storedReading({ bytes, state, how }: ReadBody): StoredReading {
  if (state !== 'read') return { reading: null, read_as: how }
  let end = Math.min(bytes.length, MAX_KEPT + 4)
  while (end < bytes.length && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--
  // A copy: a part of a buffer would keep all of it.
  return { reading: Buffer.from(bytes.subarray(0, end)), read_as: how }
}
