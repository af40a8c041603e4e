import { isUtf8 } from 'node:buffer'
import * as Type from '../../../../kernel/schema.ts'
import type { Database } from '../../../../db/client.ts'
import { nullable } from '../../../../db/sql-file.ts'
import { eventQueries, type RequestLine, StoredEvent } from '../../../../db/hooks/log/events.ts'
import { notFound } from '../../../../kernel/fault.ts'
import { parseJson } from '../../../../kernel/json.ts'
import { type JsonNode, readJson } from './json-nodes.ts'
import { headersByName, headersInOrder } from '../../receive/deliveries/stored-headers.ts'

/**
 * hooks.md section 2, EventDetail; the payload is text or, when it is not UTF-8, base64. An event
 * that came by another method than POST also has `method` and `query`: a GET has no other content.
 */
export const EventDetail = Type.Object({
  ...Type.Omit(StoredEvent, ['method', 'query', 'reading', 'read_as']).properties,
  headers: Type.Record(Type.String()),
  payload: Type.String(),
  payload_encoding: Type.Enum(['utf8', 'base64']),
  read_as: Type.Optional(
    Type.String({
      description:
        'How the payload is read where it is no plain text: gzip, form, multipart, ndjson, a ' +
        'charset; or why it can not be read: damaged, oversized, unsupported, binary',
    }),
  ),
  readable: Type.Optional(
    Type.String({ description: 'The payload decoded, a form as JSON; the first MiB of it' }),
  ),
  method: Type.Optional(Type.String({ description: 'Of a delivery by another method than POST' })),
  query: Type.Optional(nullable(Type.String({ description: 'Its query, secrets redacted' }))),
})
export type EventDetail = Type.Static<typeof EventDetail>

export function eventDetail(stored: StoredEvent): EventDetail {
  const { method, query, reading, read_as, ...event } = stored
  const payload_encoding = isUtf8(event.payload) ? 'utf8' : 'base64'
  return {
    ...event,
    headers: headersByName(event.headers),
    payload: event.payload.toString(payload_encoding),
    payload_encoding,
    ...(read_as !== null && { read_as }),
    ...(reading !== null && { readable: reading.toString('utf8') }),
    ...(method !== null && method !== 'POST' && { method, query }),
  }
}

/** The request of a delivery, as it was sent but for its secrets; of a queue the headers alone. */
export interface EventRequest extends RequestLine {
  headers: readonly (readonly [name: string, value: string])[]
}

/**
 * Reads an event without the rest of a long payload: cut between characters, with the number of
 * bytes that are left out.
 */
export async function readEventStart(db: Database, id: number, limit: number) {
  const found = await findEventStart(db, id, limit)
  if (found === undefined) throw notFound(NO_EVENT)
  return found
}

/** The same; undefined where no event has this id. */
export async function findEventStart(db: Database, id: number, limit: number) {
  // A byte more shows whether the limit falls within a character.
  const found = await eventQueries.findEventStart(db, { id, bytes: limit + 1 })
  if (found === undefined) return undefined
  const { path, reading_size, ...event } = found
  const { method, query } = event
  const payload = event.payload.subarray(0, cutAt(event.payload, limit))
  const reading = event.reading && event.reading.subarray(0, cutAt(event.reading, limit))
  const omittedBytes = event.payload_size - payload.length
  const isReadingCut = reading !== null && reading.length < (reading_size ?? 0)
  const request: EventRequest = { method, path, query, headers: headersInOrder(event.headers) }
  return {
    event: eventDetail({ ...event, payload, reading }),
    omittedBytes,
    isReadingCut,
    request,
  }
}

/** What is said of an id without an event. */
export const NO_EVENT = 'There is no event under this id; retention may have removed it.'

/** The length of the beginning that is given: never within a character of UTF-8. */
function cutAt(payload: Buffer, limit: number): number {
  if (payload.length <= limit) return payload.length
  let end = limit
  while (end > limit - 4 && ((payload[end] ?? 0) & 0xc0) === 0x80) end--
  return end
}

/** Longer payloads are shown as received: parsing them could need too much memory. */
export const MAX_PARSED = 1024 * 1024

/** What is said of a payload that is shown as bytes, in a word. */
export function unreadable({ payload_encoding, readable, read_as }: Shown): string | undefined {
  if (readable !== undefined) return undefined
  return read_as ?? (payload_encoding === 'base64' ? 'binary' : undefined)
}

type Shown = Pick<EventDetail, 'payload' | 'payload_encoding' | 'readable' | 'read_as'>

/** The text of a payload; undefined where it can't be read. */
export function textOf(event: Shown): string | undefined {
  return unreadable(event) === undefined ? (event.readable ?? event.payload) : undefined
}

/** JSON indented for reading; null for other payloads, and for those that are too long. */
export function prettyPayload(event: Shown): string | null {
  const text = textOf(event)
  return text === undefined || text.length > MAX_PARSED ? null : indentJson(text)
}

/** What a page shows as a tree; more would be a page of many hundred KB. */
const TREE_BOUNDS = { nodes: 1_000, depth: 40 }
const MAX_TREE_CHARACTERS = 200_000

/** The payload as a tree; undefined when it is not JSON, or has too much of it. */
export function payloadTree(event: Shown): JsonNode | undefined {
  const text = textOf(event)
  const isShort = text !== undefined && text.length <= MAX_TREE_CHARACTERS
  return isShort ? readJson(text, TREE_BOUNDS) : undefined
}

/** The longest result: nested brackets would make gigabytes of a few kilobytes. */
const MAX_INDENTED = 2 * MAX_PARSED

/**
 * Indents JSON text by two spaces without touching its literals: `JSON.parse` and back would round
 * long numbers. Null when the text is not JSON, or would become too long.
 */
export function indentJson(text: string): string | null {
  if (parseJson(text) === undefined) return null
  let indented = ''
  let read = 0
  let depth = 0
  for (const { 0: token, index } of text.matchAll(TOKEN)) {
    // Numbers and words are no tokens.
    indented += text.slice(read, index)
    read = index + token.length
    if (/^\s/.test(token)) continue
    if (token === ':') indented += ': '
    else if (token.length > 1) indented += token.replace(/^([[{])\s*([\]}])$/, '$1$2')
    else if (token === ',') indented += `,${lineAt(depth)}`
    else if (token === '}' || token === ']') indented += lineAt(--depth) + token
    else indented += token + lineAt(++depth)
    if (indented.length > MAX_INDENTED) return null
  }
  return indented + text.slice(read)
}

function lineAt(depth: number) {
  return `\n${'  '.repeat(depth)}`
}

/**
 * Whole strings and empty brackets, single brackets and commas, and white space. A string may end
 * where the text does: looking for its end again from each place would take quadratic time.
 */
const TOKEN = /"(?:[^"\\]|\\[^])*"?|\{\s*\}|\[\s*\]|[{}[\],:]|\s+/g
