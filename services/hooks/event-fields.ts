import type { IncomingHttpHeaders } from 'node:http'
import { firstFields } from '../../kernel/http/read-body.ts'
import { mediaType } from '../../kernel/http/headers.ts'
import type { SignedProvider } from './secrets.ts'
import { hash } from 'node:crypto'

/** A body's members: of a JSON object, or of a form. */
export type Members = Readonly<Record<string, unknown>>

/** What is taken out of a delivery besides its bytes. */
export interface EventFields {
  readonly event_type: string | null
  readonly external_id: string | null
}

/**
 * Reads a body as JSON when it parses to an object, else as a form when its type says so; else
 * undefined, which a signed receiver answers with 400.
 */
export function readMembers(body: Buffer, contentType: string | undefined): Members | undefined {
  const text = body.toString('utf8')
  try {
    const value: unknown = JSON.parse(text)
    if (isObject(value)) return value
  } catch {
    // SyntaxError: no JSON, perhaps a form.
  }
  if (mediaType(contentType) !== 'application/x-www-form-urlencoded') return undefined
  return Object.fromEntries(new URLSearchParams(firstFields(text)))
}

/** The headers in which code_host names an event's type; its signature covers the body alone. */
const UNSIGNED_TYPE_HEADERS: readonly string[] = ['x-codehost-event', 'x-github-event']

/**
 * Headers of a stored event under the type that it is stored as: an unsigned header may name another
 * type than the first event with the same body had.
 */
export function withStoredType(
  headers: Readonly<Record<string, string>>,
  { provider, event_type }: { readonly provider: string; readonly event_type: string | null },
): Readonly<Record<string, string>> {
  if (provider !== 'code_host') return headers
  const typed = Object.entries(headers).flatMap(([name, value]): [string, string][] => {
    if (!UNSIGNED_TYPE_HEADERS.includes(name)) return [[name, value]]
    return event_type === null ? [] : [[name, event_type]]
  })
  return Object.fromEntries(typed)
}

/** The type that a delivery's unsigned header names, where the event is stored as another; else null. */
export function contradictedType(event: {
  readonly provider: string
  readonly event_type: string | null
  readonly headers: Readonly<Record<string, string>>
}): string | null {
  if (event.provider !== 'code_host') return null
  const { event_type } = signedFields(event.provider, event.headers, {})
  return event_type === event.event_type ? null : (event_type ?? 'none')
}

/** Event type and delivery id of a signed delivery (the table of header names and members). */
export function signedFields(
  provider: SignedProvider,
  headers: IncomingHttpHeaders,
  members: Members,
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
  const event = isObject(members['event']) ? members['event'] : {}
  return {
    event_type:
      cleanText(event['type']) ?? cleanText(members['type']) ?? cleanText(members['command']),
    external_id: cleanId(members['event_id']) ?? cleanId(members['trigger_id']),
  }
}

/** Event type and delivery id of a generic delivery: headers only, its bytes are not interpreted. */
export function genericFields(headers: IncomingHttpHeaders): EventFields {
  return {
    event_type: cleanText(headers['x-event-type']),
    external_id: cleanId(
      headers['webhook-id'] ?? headers['x-delivery-id'] ?? headers['idempotency-key'],
    ),
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** SHA-256 in lower-case hex. */
export function sha256Hex(data: string | Buffer): string {
  return hash('sha256', data, 'hex')
}

/** The longest text that a sender may put into one of our columns. */
const LONGEST = 255

/** A sender's text as a column can hold it: well-formed, without control characters, bounded. */
export function cleanText(value: unknown): string | null {
  if (typeof value !== 'string') return null
  // Made well-formed last: the cut may fall between the two halves of a character, which jsonb refuses.
  const text = value
    .replace(/\p{Cc}/gu, '')
    .slice(0, LONGEST)
    .toWellFormed()
  return text === '' ? null : text
}

/** A delivery id; one that is too long to be stored is represented by its hash, so it stays unique. */
export function cleanId(value: unknown): string | null {
  const text = cleanText(value)
  return text !== null && text !== value
    ? `sha256:${sha256Hex(String(value).toWellFormed())}`
    : text
}
