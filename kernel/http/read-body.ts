import { isUtf8 } from 'node:buffer'
import { badRequest, Fault, unavailable } from '../fault.ts'
import { parseObject, type JsonObject } from '../json.ts'
import type { Context } from './context.ts'
import { mediaType } from './headers.ts'

/** Largest form of a page, in bytes, unless its endpoint says another. */
const FORM_LIMIT = 64 * 1024
/** URLSearchParams takes hours for millions of fields. */
const MAX_FIELDS = 1_000

/** The JSON object of a request's body. Throws 415, 413, 503 or 400 for any other body. */
export async function readJson(context: Context, limit: number): Promise<JsonObject> {
  const bytes = await readBytes(context, 'application/json', limit)
  // A byte that is not UTF-8 must not become another text. The decoder drops a byte order mark.
  const value = isUtf8(bytes) ? parseObject(new TextDecoder().decode(bytes)) : undefined
  if (value === undefined) throw badRequest('the body must be a JSON object')
  return value
}

/**
 * The fields of a form, the first of each name. The CR LF that browsers send becomes LF. Fields of
 * a name in `lists` become the lines of one text. Throws 415, 413, 503 or 400 for any other body.
 */
export async function readForm(
  context: Context,
  limit = FORM_LIMIT,
  lists: readonly string[] = [],
): Promise<Readonly<Record<string, string>>> {
  const type = 'application/x-www-form-urlencoded'
  const bytes = await readBytes(context, type, limit, formMessages(type, limit))
  const text = bytes.toString('utf8')
  if (text.split('&', MAX_FIELDS + 1).length > MAX_FIELDS) {
    throw new Fault(413, 'BODY_TOO_LARGE', `The form has more than ${MAX_FIELDS} fields.`)
  }
  const sent = new URLSearchParams(text)
  const fields = [...sent].toReversed()
  return Object.fromEntries([
    ...fields.map(([name, value]) => [name, value.replaceAll('\r\n', '\n')] as const),
    ...lists.map((name) => [name, sent.getAll(name).join('\n')] as const),
  ])
}

/**
 * The fields of a form with files, the first of each name: texts as in `readForm`, files in base64.
 * Throws 415, 413, 503 or 400 for any other body.
 */
export async function readFileForm(
  context: Context,
  limit = FORM_LIMIT,
): Promise<Readonly<Record<string, string>>> {
  const type = 'multipart/form-data'
  const bytes = await readBytes(context, type, limit, formMessages(type, limit))
  const headers = { 'content-type': context.headers['content-type'] ?? type }
  const sent = await new Response(new Uint8Array(bytes), { headers }).formData().catch(() => {
    throw badRequest(`The form is not valid ${type}.`)
  })
  const fields = [...sent].slice(0, MAX_FIELDS).toReversed()
  const texts = fields.map(async ([name, value]) => {
    if (typeof value === 'string') return [name, value.replaceAll('\r\n', '\n')] as const
    return [name, Buffer.from(await value.arrayBuffer()).toString('base64')] as const
  })
  return Object.fromEntries(await Promise.all(texts))
}

/** What a page says of a body that is not its form. */
function formMessages(type: string, limit: number) {
  return {
    unsupported: `The body must be a form: ${type}.`,
    tooLarge: `The form exceeds ${limit} bytes.`,
    aborted: 'The form did not arrive whole.',
    overloaded: 'Too many bodies at once; try again.',
  }
}

/** What an API says of a body that it does not take. */
function usualMessages(limit: number) {
  return {
    unsupported: 'the body must be JSON: send Content-Type: application/json',
    tooLarge: `the body exceeds ${limit} bytes`,
    aborted: 'the body did not arrive whole',
    overloaded: 'too many bodies at once; try again',
  }
}

/**
 * The bytes of a body of a media type, or of any. Throws 415, 413, 400 or 503 with one of the
 * messages.
 */
export async function readBytes(
  context: Context,
  type: string | undefined,
  limit: number,
  messages = usualMessages(limit),
): Promise<Buffer> {
  if (type !== undefined && mediaType(context.headers['content-type']) !== type) {
    throw new Fault(415, 'UNSUPPORTED_MEDIA_TYPE', messages.unsupported)
  }
  const body = await context.body(limit)
  if (body.ok) return body.bytes
  if (body.reason === 'too-large') throw new Fault(413, 'BODY_TOO_LARGE', messages.tooLarge)
  throw body.reason === 'aborted' ? badRequest(messages.aborted) : unavailable(messages.overloaded)
}

/** The text of a form up to its thousandth field. */
export function firstFields(text: string): string {
  let end = -1
  for (let count = 0; count < MAX_FIELDS; count++) {
    end = text.indexOf('&', end + 1)
    if (end < 0) return text
  }
  return text.slice(0, end)
}
