import { hash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { NewEvent } from '../../db/hooks/deliveries.ts'
import { mediaType } from '../../kernel/http/headers.ts'
import { firstFields } from '../../kernel/http/read-body.ts'
import { objectOf, parseObject, type JsonObject } from '../../kernel/json.ts'
import type { SignedProvider } from './secrets.ts'

/** What is taken out of a delivery besides its bytes. */
export type EventFields = Pick<NewEvent, 'event_type' | 'external_id'>

/**
 * Reads a body as JSON when it parses to an object, else as a form when its type says so; else
 * undefined, which a signed receiver answers with 400.
 */
export function readMembers(body: Buffer, contentType: string | undefined): JsonObject | undefined {
  const text = body.toString('utf8')
  const object = parseObject(text)
  if (object !== undefined) return object
  if (mediaType(contentType) !== 'application/x-www-form-urlencoded') return undefined
  return Object.fromEntries(new URLSearchParams(firstFields(text)))
}

/** The headers in which code_host names an event's type; its signature covers the body alone. */
const UNSIGNED_TYPE_HEADERS: readonly string[] = ['x-codehost-event', 'x-github-event']

/**
 * Headers of a stored event under the type that it is stored as: an unsigned header may name
 * another type than the first event with the same body had.
 */
export function withStoredType(
  headers: NewEvent['headers'],
  { provider, event_type }: Pick<NewEvent, 'provider' | 'event_type'>,
): NewEvent['headers'] {
  if (provider !== 'code_host') return headers
  const typed = Object.entries(headers).flatMap(([name, value]): [string, string][] => {
    if (!UNSIGNED_TYPE_HEADERS.includes(name)) return [[name, value]]
    return event_type === null ? [] : [[name, event_type]]
  })
  return Object.fromEntries(typed)
}

/**
 * The type that a delivery's unsigned header names, where the event is stored as another; else
 * null.
 */
export function contradictedType(
  event: Pick<NewEvent, 'provider' | 'event_type' | 'headers'>,
): string | null {
  if (event.provider !== 'code_host') return null
  const { event_type } = signedFields(event.provider, event.headers, {})
  return event_type === event.event_type ? null : (event_type ?? 'none')
}

/** Event type and delivery id of a signed delivery (the table of header names and members). */
export function signedFields(
  provider: SignedProvider,
  headers: IncomingHttpHeaders,
  members: JsonObject,
): EventFields {
  if (provider === 'code_host') {
    return {
      event_type: cleanText(headers['x-codehost-event'] ?? headers['x-github-event']),
      external_id: cleanId(headers['x-codehost-delivery'] ?? headers['x-github-delivery']),
    }
  }
  if (provider === 'payments') {
    return { event_type: cleanText(members['type']), external_id: cleanId(members['id']) }
  }
  const event = objectOf(members['event'])
  return {
    event_type:
      cleanText(event['type']) ?? cleanText(members['type']) ?? cleanText(members['command']),
    external_id: cleanId(members['event_id']) ?? cleanId(members['trigger_id']),
  }
}

/**
 * Event type and delivery id of a generic delivery: headers only, its bytes are not interpreted.
 */
export function genericFields(headers: IncomingHttpHeaders): EventFields {
  return {
    event_type: cleanText(headers['x-event-type']),
    external_id: cleanId(
      headers['webhook-id'] ?? headers['x-delivery-id'] ?? headers['idempotency-key'],
    ),
  }
}

/** SHA-256 in lower-case hex. */
export function sha256Hex(data: string | Buffer): string {
  return hash('sha256', data, 'hex')
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
