import Type from 'typebox'
import type { Executor } from '../client.ts'
import { Timestamp, many, sqlFile } from '../sql-file.ts'
import { TrustMode } from './providers.ts'

/** An accepted delivery on its way into the database. */
export interface NewEvent {
  readonly provider: string
  readonly event_type: string | null
  readonly trust_mode: TrustMode
  readonly verified: boolean
  readonly verify_detail: string | null
  readonly external_id: string | null
  readonly content_type: string | null
  readonly source_ip: string | null
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
  /** SHA-256 of the body in lower-case hex. */
  readonly body_hash: string
  readonly received_at: Date
}

/** The event of row `n` of a batch; not `fresh` means that its delivery id was known. */
export const SavedEvent = Type.Object({
  n: Type.Integer(),
  id: Type.Integer(),
  trust_mode: TrustMode,
  verified: Type.Boolean(),
  received_at: Timestamp,
  fresh: Type.Boolean(),
})
export type SavedEvent = Type.Static<typeof SavedEvent>

export const deliveryQueries = sqlFile('sql/hooks/deliveries.sql', {
  saveDeliveries: many(SavedEvent, { bodies: 'bytea', rows: 'jsonb' }),
})

/**
 * Stores a batch in one statement and returns a row for each event, in the batch's order. No two
 * events of a batch may share provider and delivery id; `deliveries` counts what an event stands
 * for.
 */
export function saveDeliveries(
  db: Executor,
  batch: readonly { readonly event: NewEvent; readonly deliveries: number }[],
): Promise<readonly SavedEvent[]> {
  let at = 0
  // The statement reads the values by their position.
  const rows = batch.map(({ event, deliveries }) => {
    const row = [
      event.provider,
      event.event_type,
      event.trust_mode,
      event.verified,
      event.verify_detail,
      event.external_id,
      event.content_type,
      event.source_ip,
      event.headers,
      event.body_hash,
      deliveries,
      event.received_at,
      at,
      event.body.length,
    ]
    at += event.body.length
    return row
  })
  const bodies = Buffer.concat(
    batch.map(({ event }) => event.body),
    at,
  )
  return deliveryQueries.saveDeliveries(db, { bodies, rows })
}
