import { isUtf8 } from 'node:buffer'
import type { NewEvent } from '../../../db/hooks/deliveries.ts'
import { sanitizeHeaders } from '../redact.ts'
import { cleanText, sha256Hex } from '../event-fields.ts'

/** One entry of a channel: its fields in order, each with its value's bytes. */
export interface QueueEntry {
  /** Unique in its channel for as long as the channel exists. */
  readonly id: string
  readonly fields: readonly (readonly [name: string, value: Buffer])[]
}

/** The provider of a channel. */
export function queueProvider(channel: string): string {
  return `queue:${channel}`
}

/** Fields that have a meaning of their own beside `payload`. */
const EVENT_TYPE = 'event_type'
const CONTENT_TYPE = 'content_type'

/**
 * An entry as an event (decisions.md section 3, Queue): the payload is the field `payload` byte for
 * byte, and its other fields are kept as headers; without that field it is all fields as JSON.
 */
export function entryEvent(channel: string, entry: QueueEntry, receivedAt: Date): NewEvent {
  const { id, fields } = entry
  const payload = fieldOf(entry, 'payload')
  const body = payload ?? Buffer.from(JSON.stringify(membersOf(entry)))
  return {
    provider: queueProvider(channel),
    event_type: cleanText(fieldOf(entry, EVENT_TYPE)?.toString()),
    trust_mode: 'queue',
    verified: false,
    verify_detail: null,
    external_id: `${channel}:${id}`,
    content_type:
      payload === undefined
        ? 'application/json'
        : cleanText(fieldOf(entry, CONTENT_TYPE)?.toString()),
    source_ip: null,
    headers: payload === undefined ? {} : sanitizeHeaders(headersOf(fields)),
    body,
    body_hash: sha256Hex(body),
    received_at: receivedAt,
  }
}

/** Bytes of all fields of an entry. */
export function entrySize({ fields }: QueueEntry): number {
  return fields.reduce((sum, [name, value]) => sum + Buffer.byteLength(name) + value.length, 0)
}

function fieldOf({ fields }: QueueEntry, name: string): Buffer | undefined {
  return fields.find(([field]) => field === name)?.[1]
}

/** Names may repeat: their values then stand in a list. Bytes that are no text stand as base64. */
function membersOf({ fields }: QueueEntry): Readonly<Record<string, unknown>> {
  const members = new Map<string, unknown[]>()
  for (const [name, value] of fields) {
    const member = isUtf8(value) ? value.toString() : { base64: value.toString('base64') }
    members.set(name, [...(members.get(name) ?? []), member])
  }
  const entries = [...members].map(([name, all]) => [name, all.length === 1 ? all[0] : all])
  return Object.fromEntries(entries) as Readonly<Record<string, unknown>>
}

/**
 * The fields beside the payload under names that a header can have, so that a replay can send them.
 */
function headersOf(fields: QueueEntry['fields']): Record<string, string[]> {
  const headers = new Map<string, string[]>()
  for (const [field, value] of fields) {
    if (field === 'payload' || field === EVENT_TYPE || field === CONTENT_TYPE) continue
    const name = field.toLowerCase().replaceAll(/[^!#$%&'*+.^_`|~0-9a-z-]/g, '-')
    const text = value.toString().replaceAll(/\p{Cc}/gu, '')
    if (name !== '') headers.set(name, [...(headers.get(name) ?? []), text])
  }
  return Object.fromEntries(headers)
}
