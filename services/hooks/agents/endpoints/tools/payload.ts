import { isUtf8 } from 'node:buffer'
import type { Database } from '../../../../../db/client.ts'
import { eventQueries } from '../../../../../db/hooks/log/events.ts'
import type {
  ResourceContents,
  ResourceLink,
  ResourceTemplate,
} from '../../../../../kernel/mcp/server.ts'
import type { EventDetail } from '../../../log/events/detail.ts'
import { UNTRUSTED } from './arguments.ts'
import type { ToolParts } from './parts.ts'

/** Bytes of a payload in one resource. A payload may have as many as `HOOKS_MAX_BODY` allows. */
const PART_BYTES = 1024 * 1024
/** PostgreSQL stores no longer value than 1 GiB. */
const MAX_PARTS = 1024
/** Links in a result: 32 MiB, more than the default of `HOOKS_MAX_BODY`. */
const MAX_LINKS = 32

const TEXT = 'text/plain'
/** The sender's own media type is left out: no program should show a payload as a page. */
const BYTES = 'application/octet-stream'

type Sized = Pick<EventDetail, 'id' | 'payload_size'>

/** `gatehouse://events/{id}/payload/{part}`: the bytes of a payload, 1 MiB at a time. */
export function payloadTemplate({ db }: Pick<ToolParts, 'db'>): ResourceTemplate {
  return {
    uriTemplate: uriOf('{id}', '{part}'),
    name: 'event-payload',
    title: 'Payload of a webhook event',
    description:
      'The payload of the event with this id, as it was received: part 1 is its first MiB, ' +
      `part 2 the next one. ${UNTRUSTED}`,
    async read(uri, { id = '', part = '' }) {
      if (!isNumber(id) || !isNumber(part) || Number(part) > MAX_PARTS) return undefined
      const bytes = await readPart(db, Number(id), Number(part))
      if (bytes === undefined) return undefined
      return [contentsOf(uri, bytes), { uri: `${uri}#notice`, mimeType: TEXT, text: UNTRUSTED }]
    },
  }
}

/** The parts of a payload, as links for clients that read resources. */
export function partLinks(event: Sized & Pick<EventDetail, 'payload_encoding'>) {
  const { id, payload_size, payload_encoding } = event
  const parts = countParts(event)
  return Array.from({ length: Math.min(parts, MAX_LINKS) }, (_, at): ResourceLink => ({
    uri: uriOf(id, at + 1),
    name: `event-${id}-payload-${at + 1}`,
    title: `Payload of event ${id}, part ${at + 1} of ${parts}`,
    description: UNTRUSTED,
    mimeType: payload_encoding === 'utf8' ? TEXT : BYTES,
    // A character is in the part in which it begins, which may add three bytes.
    size: Math.min(PART_BYTES, payload_size - at * PART_BYTES),
  }))
}

/** How to read a whole payload: for models, and for clients that show them no links. */
export function partsNotice(event: Sized): string {
  const parts = countParts(event)
  const first = uriOf(event.id, 1)
  if (parts === 1) return `The resource ${first} has all of it.`
  return `The resources ${first} to ${uriOf(event.id, parts)} have all of it.`
}

function uriOf(id: number | string, part: number | string): string {
  return `gatehouse://events/${id}/payload/${part}`
}

function countParts({ payload_size }: Sized): number {
  return Math.max(1, Math.ceil(payload_size / PART_BYTES))
}

/** The id of an event or the number of a part. */
function isNumber(text: string): boolean {
  return /^[1-9]\d{0,14}$/.test(text)
}

/**
 * The bytes of a part, with whole characters: one belongs to the part in which it begins. All parts
 * together are the payload. Undefined where no event has this id, or its payload no such part.
 */
async function readPart(db: Database, id: number, part: number): Promise<Buffer | undefined> {
  const skipped = (part - 1) * PART_BYTES
  const wanted = { id, skipped, bytes: PART_BYTES + MAX_TAIL }
  const found = await eventQueries.findPayloadPart(db, wanted)
  if (found === undefined || part > countParts({ id, ...found })) return undefined
  const start = part === 1 ? 0 : tailAt(found.part, 0)
  return found.part.subarray(start, PART_BYTES + tailAt(found.part, PART_BYTES))
}

/** The most bytes of a character of UTF-8 beside its first one. */
const MAX_TAIL = 3

/** How many bytes from a place on belong to a character that begins before it. */
function tailAt(bytes: Buffer, place: number): number {
  let length = 0
  while (length < MAX_TAIL && ((bytes[place + length] ?? 0) & 0xc0) === 0x80) length++
  return length
}

function contentsOf(uri: string, bytes: Buffer): ResourceContents {
  if (isUtf8(bytes)) return { uri, mimeType: TEXT, text: bytes.toString('utf8') }
  return { uri, mimeType: BYTES, blob: bytes.toString('base64') }
}
