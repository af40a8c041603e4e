import { isUtf8 } from 'node:buffer'
import type { NewEvent } from '../../../../db/hooks/receive/deliveries.ts'
import { storedHeaders } from '../../redact.ts'
import { cleanText } from '../../receive/deliveries/fields.ts'

/** One entry of a channel: its fields in order, each with its value's bytes. */
export interface QueueEntry {
  /** Unique in its channel for as long as the channel exists. */
  id: string
  fields: readonly (readonly [name: string, value: Buffer])[]
}

/** The provider of a channel. */
export function queueProvider(channel: string): string {
  return `queue:${channel}`
}

/** Fields that have a meaning of their own beside `payload`. */
const EVENT_TYPE = 'event_type'
const CONTENT_TYPE = 'content_type'

/**
 * An entry as an event (decisions.md section 3, Queue): the payload is the field `payload` byte
 * for byte, and its other fields are kept as headers; without that field it is all fields as JSON.
 */
export function entryEvent(channel: string, entry: QueueEntry): NewEvent {
  const { id, fields } = entry
  const payload = fieldOf(entry, 'payload')
  const body = payload ?? Buffer.from(JSON.stringify(membersOf(entry)))
  return {
    provider: queueProvider(channel),
    event_type: cleanText(fieldOf(entry, EVENT_TYPE)?.toString()),
    trust: 'queue',
    external_id: `${channel}:${id}`,
    method: null,
    path: null,
    query: null,
    content_type:
      payload === undefined
        ? 'application/json'
        : cleanText(fieldOf(entry, CONTENT_TYPE)?.toString()),
    source_ip: null,
    headers: storedHeaders(payload === undefined ? [] : headersOf(fields)),
    body,
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
  const members = [...Map.groupBy(fields, ([name]) => name)].map(([name, group]) => {
    const all = group.map(([, value]) =>
      isUtf8(value) ? value.toString() : { base64: value.toString('base64') },
    )
    return [name, all.length === 1 ? all[0] : all] as const
  })
  return Object.fromEntries(members)
}

/**
 * The fields beside the payload, name and value in turn, under names that a header can have, so
 * that a replay can send them.
 */
function headersOf(fields: QueueEntry['fields']): readonly string[] {
  const headers: string[] = []
  for (const [field, value] of fields) {
    if (field === 'payload' || field === EVENT_TYPE || field === CONTENT_TYPE) continue
    const name = field.toLowerCase().replaceAll(/[^!#$%&'*+.^_`|~0-9a-z-]/g, '-')
    const text = value.toString().replaceAll(/\p{Cc}/gu, '')
    if (name !== '') headers.push(name, text)
  }
  return headers
}
