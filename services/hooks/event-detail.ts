import { isUtf8 } from 'node:buffer'
import Type from 'typebox'
import type { Database } from '../../db/client.ts'
import { findEventStart } from '../../db/hooks/event-start.ts'
import { StoredEvent } from '../../db/hooks/rows.ts'
import { firstFields } from '../../kernel/http/read-body.ts'
import { indentJson } from './indent-json.ts'
import { isRepeatable } from './outgoing-headers.ts'
import { REDACTED } from './redact.ts'

/** hooks.md section 2, EventDetail, with the payload as text or, when it is no UTF-8, as base64. */
export const EventDetail = Type.Object({
  ...StoredEvent.properties,
  payload: Type.String(),
  payload_encoding: Type.Union([Type.Literal('utf8'), Type.Literal('base64')]),
})
export type EventDetail = Type.Static<typeof EventDetail>

export function eventDetail(event: StoredEvent): EventDetail {
  const payload_encoding = isUtf8(event.payload) ? 'utf8' : 'base64'
  return { ...event, payload: event.payload.toString(payload_encoding), payload_encoding }
}

/** An event with its payload up to `limit` bytes, never to within a character, and what that leaves out. */
export interface EventStart {
  readonly event: EventDetail
  readonly omittedBytes: number
}

/** Reads an event without the rest of a long payload; undefined when no such event is stored. */
export async function readEventStart(
  db: Database,
  id: number,
  limit: number,
): Promise<EventStart | undefined> {
  // A byte more shows whether the limit falls within a character.
  const event = await findEventStart(db, id, limit + 1)
  if (event === undefined) return undefined
  const payload = event.payload.subarray(0, cutAt(event.payload, limit))
  const omittedBytes = event.payload_size - payload.length
  return { event: eventDetail({ ...event, payload }), omittedBytes }
}

/** The end of the part that is given: never within a character of UTF-8. */
function cutAt(payload: Buffer, limit: number): number {
  if (payload.length <= limit) return payload.length
  let end = limit
  while (end > limit - 4 && ((payload[end] ?? 0) & 0xc0) === 0x80) end--
  return end
}

/** A longer payload is shown as it came: to take it apart could need more memory than there is. */
export const READABLE = 1024 * 1024

/** The payload for reading: JSON indented, a form of up to 1,000 fields one a line; null for everything else. */
export function prettyPayload({
  payload,
  payload_encoding,
  payload_size,
  content_type,
}: EventDetail): string | null {
  if (payload_encoding === 'base64' || payload_size > READABLE) return null
  const json = indentJson(payload)
  if (json !== null) return json
  if (!(content_type ?? '').startsWith('application/x-www-form-urlencoded')) return null
  if (firstFields(payload) !== payload) return null
  return [...new URLSearchParams(payload)].map(([name, value]) => `${name} = ${value}`).join('\n')
}

/** Headers that curl sets by itself. */
const SET_BY_CURL = /^(accept|accept-encoding|user-agent)$/

/** Longest payload that stands in the command itself. */
const INLINE = 16 * 1024

/** A page, a clipboard or a terminal changes, drops or obeys these; CR LF would arrive as LF. */
const NOT_PASTED = /[^\P{Cc}\n\t]/u

/**
 * A command line that sends the stored bytes to a receiver. A secret header stands in it as
 * `REPLACE_ME`, because its value was never stored; a payload that is long, binary or has control
 * characters is fetched from here, a header with any is left out.
 */
export function curlCommand(event: EventDetail, receiver: string, payloadUrl: string): string {
  const inline =
    event.payload_encoding === 'utf8' &&
    event.payload_size <= INLINE &&
    !NOT_PASTED.test(event.payload)
  const lines = [`${inline ? '' : `curl -sS ${quote(payloadUrl)} | `}curl -sS ${quote(receiver)}`]
  for (const [name, value] of Object.entries(event.headers)) {
    if (!isRepeatable(name) || SET_BY_CURL.test(name) || NOT_PASTED.test(value)) continue
    lines.push(`-H ${quote(`${name}: ${value === REDACTED ? placeholder(name) : value}`)}`)
  }
  lines.push(inline ? `--data-raw ${quote(event.payload)}` : '--data-binary @-')
  return lines.join(' \\\n  ')
}

/** What stands where a value was that is not kept: a token is believed in this form only. */
function placeholder(name: string): string {
  return name === 'authorization' ? 'Bearer REPLACE_ME' : 'REPLACE_ME'
}

/** Text as one word of a POSIX shell. */
function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}
