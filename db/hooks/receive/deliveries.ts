import { crc32 } from 'node:zlib'
import * as Type from '../../../kernel/schema.ts'
import type { Executor } from '../../client.ts'
import { Timestamp, many, nullable, sqlFile } from '../../sql-file.ts'
import { TrustMode } from './providers.ts'

/** How an event is trusted, as the database has it: see hooks.trust_mode(). */
const TRUST = {
  sha256: 1,
  token: 2,
  open: 3,
  queue: 4,
  sha512: 5,
  ed25519: 6,
  sha1: 7,
  p256: 8,
  'rsa-sha256': 9,
  'rsa-sha1': 10,
} as const

/** How a delivery was trusted: by the algorithm of its signature, or without one. */
export type Trust = keyof typeof TRUST

/** An accepted delivery on its way into the database. */
export interface NewEvent {
  provider: string
  event_type: string | null
  trust: Trust
  external_id: string | null
  /** Of the request, without secrets; null where it came from a queue. */
  method: string | null
  path: string | null
  query: string | null
  content_type: string | null
  source_ip: string | null
  /** JSON: a list of [name, value], in the order and case in which they came, without secrets. */
  headers: string
  body: Buffer
  /** The body as text in UTF-8, where that is another one; of a long text the beginning. */
  reading: Buffer | null
  /** How the body was read, or why it can't be; null as it was sent. */
  read_as: string | null
}

/** The event of row `n` of a batch: where its delivery id was known, the first one. */
export const SavedEvent = Type.Object({
  n: Type.Integer(),
  id: Type.Integer(),
  trust_mode: TrustMode,
  verified: Type.Boolean(),
  received_at: Timestamp,
  /** By how many seconds the database's clock had been set back before this batch; else null. */
  set_back_s: nullable(Type.Integer()),
})
export type SavedEvent = Type.Static<typeof SavedEvent>

export const deliveryQueries = sqlFile('sql/hooks/receive/deliveries.sql', {
  saveDeliveries: many(SavedEvent, { bodies: 'bytea', rows: 'jsonb', most_types: 'int8' }),
})

function isSigned(trust: Trust): boolean {
  return trust !== 'token' && trust !== 'open' && trust !== 'queue'
}

/** Event types of a provider that hooks.event_types has at most. */
export const MAX_KNOWN_TYPES = 500

/** An event of a batch. */
interface BatchRow {
  event: NewEvent
  /** Deliveries that it stands for. */
  deliveries: number
  /** True where hooks.event_types may not have its type. */
  hasNewType: boolean
}

/**
 * Stores a batch in one statement and returns a row for each event, in the batch's order. No two
 * events of a batch may share provider and delivery id.
 */
export function saveDeliveries(
  db: Executor,
  batch: readonly BatchRow[],
): Promise<readonly SavedEvent[]> {
  let at = 0
  // The statement reads the values by their position.
  const rows = batch.map(({ event, deliveries, hasNewType }) => {
    const row = [
      isSigned(event.trust) ? crc32(event.body) | 0 : null,
      TRUST[event.trust],
      event.provider,
      event.event_type,
      event.external_id,
      event.method,
      event.path,
      event.query,
      event.content_type,
      event.source_ip,
      event.headers,
      deliveries,
      hasNewType,
      event.read_as,
      at,
      event.body.length,
      event.reading?.length ?? null,
    ]
    at += event.body.length + (event.reading?.length ?? 0)
    return row
  })
  const bodies = Buffer.concat(
    batch.flatMap(({ event: { body, reading } }) => (reading === null ? [body] : [body, reading])),
    at,
  )
  return deliveryQueries.saveDeliveries(db, { bodies, rows, most_types: MAX_KNOWN_TYPES })
}
