import { hash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { NewEvent } from '../../../../db/hooks/receive/deliveries.ts'
import { mediaType } from '../../../../kernel/http/headers.ts'
import { firstFields } from '../../../../kernel/http/read-body.ts'
import {
  isList,
  isObject,
  memberAt,
  objectOf,
  parseJson,
  parseObject,
  type JsonObject,
} from '../../../../kernel/json.ts'
import type { Member, MemberName, Place, Places } from '../schemes/scheme.ts'

/** What is taken out of a delivery besides its bytes. */
type EventFields = Pick<NewEvent, 'event_type' | 'external_id'>

/** What a body holds: an object, a list of events, or the fields of a form. */
export type Content = JsonObject | readonly unknown[]

/**
 * Reads a body as JSON when it parses to an object, else as a form when its type says so, else as
 * a list of JSON; else undefined. JSON in the field `payload` of a form is read, too.
 */
export function readContent(body: Buffer, contentType: string | undefined): Content | undefined {
  const text = body.toString('utf8')
  const value = parseJson(text)
  if (isObject(value)) return value
  if (mediaType(contentType) !== 'application/x-www-form-urlencoded') {
    return isList(value) ? value : undefined
  }
  const fields = Object.fromEntries(new URLSearchParams(firstFields(text)))
  const payload = parseObject(fields['payload'] ?? '')
  return payload === undefined ? fields : { ...fields, payload }
}

/** Event type and delivery id, from where deliveries of a provider have them. */
export function fieldsAt(
  { type, id }: Places,
  headers: IncomingHttpHeaders,
  content: Content,
): EventFields {
  return {
    event_type: firstAt(type, headers, content, cleanText),
    external_id: firstAt(id, headers, content, cleanId),
  }
}

function firstAt(
  { headers: names, json: members }: Place,
  headers: IncomingHttpHeaders,
  content: Content,
  clean: (value: unknown) => string | null,
): string | null {
  for (const name of names) {
    const value = headers[name]
    if (value !== undefined) return clean(value)
  }
  for (const member of members) {
    const value = clean(textAt(content, member))
    if (value !== null) return value
  }
  return null
}

/** The text of a member; undefined where it, or a part of it, is missing. */
function textAt(content: Content, member: Member): string | undefined {
  if (typeof member === 'object' && 'nameIn' in member) return nameAt(content, member)
  const paths = typeof member === 'string' ? [member] : member
  const texts = paths.flatMap((path) => textsAt(content, path))
  return texts.every((text) => text !== undefined) ? texts.join(':') : undefined
}

/** The texts at a path, one for each item where it has `*`. */
function textsAt(content: Content, path: string): readonly (string | undefined)[] {
  const [first = '', ...inner] = path.split(/\.?\*\./)
  let found: readonly unknown[] = [first === '' ? content : memberAt(content, first)]
  for (const part of inner) {
    found = found.flatMap((list) => {
      const items = isList(list) && list.length > 0 ? list : [undefined]
      return items.map((item) => memberAt(item, part))
    })
  }
  return found.map(textOf)
}

/** A text, or a whole number that JSON.parse has read exactly. */
function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  return Number.isSafeInteger(value) ? String(value) : undefined
}

function nameAt(content: Content, { nameIn, apart }: MemberName): string | undefined {
  const object = nameIn === '' ? content : memberAt(content, nameIn)
  return Object.keys(objectOf(object)).find((name) => !apart.includes(name))
}

/** SHA-256 in lower-case hex. */
export function sha256Hex(data: string | Buffer): string {
  return hash('sha256', data, 'hex')
}

/**
 * The id of a delivery whose sender gives none. For methods other than POST it covers the method and
 * the query, too: a GET has no other content.
 */
export function idOfBytes(method: string, search: string, body: Buffer): string {
  const hash = sha256Hex(body)
  return `sha256:${method === 'POST' ? hash : sha256Hex(`${method} ${search}\n${hash}`)}`
}

/** The longest text of a sender that a column holds. */
const MAX_TEXT = 255

/** A sender's text as a column can hold it: well-formed, without control characters, bounded. */
export function cleanText(value: unknown): string | null {
  if (typeof value !== 'string') return null
  // Made well-formed last: the cut may fall between the two halves of a character, which jsonb
  // refuses.
  const text = value
    .replace(/\p{Cc}/gu, '')
    .slice(0, MAX_TEXT)
    .toWellFormed()
  return text === '' ? null : text
}

/**
 * A delivery id; one that is too long to be stored is represented by its hash, so it stays unique.
 */
function cleanId(value: unknown): string | null {
  const text = cleanText(value)
  return text !== null && text !== value
    ? `sha256:${sha256Hex(String(value).toWellFormed())}`
    : text
}
