import { hash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { NewEvent } from '../../../../db/hooks/receive/deliveries.ts'
import type { Place } from '../../../../db/hooks/receive/providers.ts'
import { mediaType } from '../../../../kernel/http/headers.ts'
import { firstFields } from '../../../../kernel/http/read-body.ts'
import { memberAt, parseObject, type JsonObject } from '../../../../kernel/json.ts'
import type { Places } from '../schemes/scheme.ts'

/** What is taken out of a delivery besides its bytes. */
type EventFields = Pick<NewEvent, 'event_type' | 'external_id'>

/**
 * Reads a body as JSON when it parses to an object, else as a form when its type says so; else
 * undefined, which a signed receiver answers with 400.
 */
export function readMembers(
  body: Buffer,
  contentType: string | undefined,
): JsonObject | undefined {
  const text = body.toString('utf8')
  const object = parseObject(text)
  if (object !== undefined) return object
  if (mediaType(contentType) !== 'application/x-www-form-urlencoded') return undefined
  return Object.fromEntries(new URLSearchParams(firstFields(text)))
}

/** Event type and delivery id, from where deliveries of a provider have them. */
export function fieldsAt(
  { type, id }: Places,
  headers: IncomingHttpHeaders,
  members: JsonObject,
): EventFields {
  return {
    event_type: firstAt(type, headers, members, cleanText),
    external_id: firstAt(id, headers, members, cleanId),
  }
}

function firstAt(
  { headers: names, json: paths }: Place,
  headers: IncomingHttpHeaders,
  members: JsonObject,
  clean: (value: unknown) => string | null,
): string | null {
  for (const name of names) {
    const value = headers[name]
    if (value !== undefined) return clean(value)
  }
  for (const path of paths) {
    const value = clean(memberAt(members, path))
    if (value !== null) return value
  }
  return null
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
