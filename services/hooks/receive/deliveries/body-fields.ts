import { isObject, isList, parseJson } from '../../../../kernel/json.ts'
import { headerParameter } from '../../../../kernel/http/headers.ts'
import { knownCharset } from '../../../../kernel/http/charset.ts'
import { readParts, type Part } from './multipart.ts'

// Forms as the JSON object of their fields.

/** A field, and of a file what is known of it. */
type Field = readonly [name: string, value: string | PartFacts]

interface PartFacts {
  filename?: string
  content_type?: string
  size: number
}

/** JSON of fields; `isWhole` is false where some were left out. */
export interface FieldsJson {
  text: string
  isWhole: boolean
}

/** Fields of a form, and its bytes: its values take up to three times their size in it. */
const MAX_FIELDS = 1_000
const MAX_FORM = 4 * 1024 * 1024
/** A longer field of multipart is given as a file is. */
const MAX_FIELD = 64 * 1024

/** A form of `application/x-www-form-urlencoded`. Its bytes are those of a charset. */
export function formJson(body: Buffer, charset: string | undefined): FieldsJson {
  // Characters of one byte keep the bytes of all charsets.
  const text = body.toString('latin1', 0, MAX_FORM)
  const all = text.split('&', MAX_FIELDS + 1)
  const decoder = new TextDecoder(charset)
  const decode = (encoded: string) => decoder.decode(bytesOf(encoded))
  const fields = all.slice(0, MAX_FIELDS).flatMap((pair): readonly Field[] => {
    if (pair === '') return []
    const [name = '', ...rest] = pair.split('=')
    return [[decode(name), decode(rest.join('='))]]
  })
  return { text: toJson(fields), isWhole: all.length <= MAX_FIELDS && body.length <= MAX_FORM }
}

function bytesOf(encoded: string): Buffer {
  const text = encoded
    .replaceAll('+', ' ')
    .replace(/%([\da-f]{2})/gi, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)))
  return Buffer.from(text, 'latin1')
}

/** A body of `multipart/form-data`; undefined where it has no part. */
export function multipartJson(body: Buffer, boundary: string): FieldsJson | undefined {
  const { parts, isWhole } = readParts(body, boundary)
  if (parts.length === 0) return undefined
  const charsets = charsetsIn(parts)
  const fields = parts.map((part): Field => [part.name, valueOf(part, charsets)])
  return { text: toJson(fields), isWhole }
}

/** SendGrid names the charsets of all fields in one of them. */
function charsetsIn(parts: readonly Part[]): ReadonlyMap<string, unknown> {
  const field = parts.find(({ name, bytes }) => name === 'charsets' && bytes.length <= MAX_FIELD)
  const named = parseJson(field?.bytes.toString() ?? '')
  return new Map(isObject(named) ? Object.entries(named) : [])
}

function valueOf(part: Part, charsets: ReadonlyMap<string, unknown>): Field[1] {
  const { name, filename, contentType, bytes } = part
  if (filename === undefined && bytes.length <= MAX_FIELD) {
    const charset = headerParameter(contentType, 'charset') ?? charsets.get(name)
    const known = typeof charset === 'string' ? knownCharset(charset) : undefined
    return new TextDecoder(known).decode(bytes)
  }
  return {
    ...(filename !== undefined && { filename }),
    ...(contentType !== undefined && { content_type: contentType }),
    size: bytes.length,
  }
}

/**
 * Fields in the order of their names' first places; values of a repeated name are a list. A field
 * `payload` that holds an object or a list is that JSON; alone, it is the whole.
 */
function toJson(fields: readonly Field[]): string {
  const [only] = fields
  const whole = only !== undefined && fields.length === 1 ? jsonIn(only) : undefined
  if (whole !== undefined) return whole
  const members = [...Map.groupBy(fields, ([name]) => name)].map(([name, group]) => {
    const values = group.map((field) => jsonIn(field) ?? JSON.stringify(field[1]))
    const [first = ''] = values
    return `${JSON.stringify(name)}:${values.length === 1 ? first : `[${values.join(',')}]`}`
  })
  return `{${members.join(',')}}`
}

/** The JSON in a field `payload`, as its text: long numbers keep their digits. */
function jsonIn([name, value]: Field): string | undefined {
  if (name !== 'payload' || typeof value !== 'string') return undefined
  const text = value.trim()
  const json = parseJson(text)
  return isObject(json) || isList(json) ? text : undefined
}
