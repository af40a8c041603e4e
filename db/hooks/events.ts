import type { Executor } from '../client.ts'
import { many, one, optional } from '../rows.ts'
import { hooksQueries as q } from './queries.ts'
import type { EventSummary, Position, StoredEvent, StreamBounds } from './rows.ts'

export function findEvent(db: Executor, id: number): Promise<StoredEvent | undefined> {
  return optional(db, q.findEvent, [id])
}

/** Id of the first signed event of the same provider with the same body. */
export async function findSameBody(db: Executor, id: number): Promise<number | undefined> {
  const row = await optional<{ id: number }>(db, q.findSameBody, [id])
  return row?.id
}

/** Which events a page of the log shows; `before` is the keyset position of the page above. */
export interface EventFilter {
  readonly provider: string | null
  readonly event_type: string | null
  readonly sinceTime: Date | null
  readonly sinceId: number | null
  readonly before: Position | null
}

/** The position above every event. */
export const NEWEST_POSITION: Position = {
  received_at: new Date('9999-12-31T00:00:00Z'),
  id: Number.MAX_SAFE_INTEGER,
}

/** A page of the log, newest first. */
export function listEvents(
  db: Executor,
  filter: EventFilter,
  limit: number,
): Promise<readonly EventSummary[]> {
  const { received_at, id } = filter.before ?? NEWEST_POSITION
  const args = [received_at, id, filter.sinceTime, filter.sinceId, limit]
  if (filter.event_type !== null) {
    return many(db, q.listEventsOfType, [...args, filter.event_type, filter.provider])
  }
  if (filter.provider !== null) return many(db, q.listEventsOfProvider, [...args, filter.provider])
  return many(db, q.listEvents, args)
}

/** The next events above an id, in order. */
export function listEventsAfter(
  db: Executor,
  id: number,
  limit: number,
): Promise<readonly EventSummary[]> {
  return many(db, q.listEventsAfter, [id, limit])
}

/** Bounds of the stream when at most `replay` events are replayed. */
export function streamBounds(db: Executor, replay: number): Promise<StreamBounds> {
  return one(db, q.streamBounds, [replay])
}
