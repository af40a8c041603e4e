import type { Executor } from '../client.ts'
import { many, optional } from '../rows.ts'
import type { EventFilter } from './events.ts'
import { hooksQueries as q } from './queries.ts'
import type { EventSummary, Position, StoredEvent } from './rows.ts'

/** What a payload must hold; null asks for nothing. */
export interface PayloadFilter {
  /** Bytes that stand anywhere in its first MiB. */
  readonly text: string | null
  /** A member of its JSON, by dotted path, and the text of its value. */
  readonly json: { readonly path: string; readonly value: string } | null
}

/** Whether payloads must be read: such a search goes in steps and takes its time. */
export function readsPayloads({ text, json }: PayloadFilter): boolean {
  return text !== null || json !== null
}

/** Bytes of payloads that one statement of a search may look through, beside the last one of them. */
const STEP_BYTES = 4 * 1024 * 1024

/**
 * The last of the next `rows` events below a position, or of fewer where their payloads are large;
 * undefined when nothing is left beyond them.
 */
export function searchWindowEnd(
  db: Executor,
  below: Position,
  rows: number,
): Promise<Position | undefined> {
  return optional(db, q.searchWindowEnd, [below.received_at, below.id, rows, STEP_BYTES])
}

/** The highest id up to `last` that one statement of a search looks through above `after`. */
export async function searchWindowThrough(
  db: Executor,
  after: number,
  last: number,
): Promise<number> {
  const row = await optional<{ id: number }>(db, q.searchWindowThrough, [after, last, STEP_BYTES])
  return row?.id ?? last
}

/** Ids that one statement looks at for one whose event is below a position. */
const STEP_IDS = 10_000

/**
 * The lowest id from `from` on whose event may be below a position: it is, or those from it on were not
 * looked at. Undefined when there is none.
 */
export async function findIdBelow(
  db: Executor,
  from: number,
  { received_at, id }: Position,
): Promise<number | undefined> {
  const row = await optional<{ id: number }>(db, q.findIdBelow, [from, received_at, id, STEP_IDS])
  return row?.id
}

/** Matching events from `below` (exclusive) down to `end` (inclusive), newest first. */
export function searchEvents(
  db: Executor,
  below: Position,
  end: Position,
  filter: EventFilter,
  payload: PayloadFilter,
  limit: number,
): Promise<readonly EventSummary[]> {
  return many(db, q.searchEvents, [
    below.received_at,
    below.id,
    end.received_at,
    end.id,
    filter.provider,
    filter.event_type,
    filter.sinceTime,
    filter.sinceId,
    ...payloadArgs(payload),
    limit,
  ])
}

/** The first event above `after` and up to `through` that is as wanted. */
export function findEventAfter(
  db: Executor,
  after: number,
  through: number,
  { provider, event_type }: Pick<EventFilter, 'provider' | 'event_type'>,
  payload: PayloadFilter,
): Promise<StoredEvent | undefined> {
  const args = [after, through, provider, event_type, ...payloadArgs(payload)]
  return optional(db, q.findEventAfter, args)
}

/** Text, name of the member, its path and its value, as both queries take them. */
function payloadArgs({ text, json }: PayloadFilter): (Buffer | string | null)[] {
  // The name of the member stands in the payload as it is: a cheap test before the JSON is read.
  const name = json?.path.split('.').findLast((step) => !/^\d+$/.test(step))
  return [
    text === null ? null : Buffer.from(text),
    json === null ? null : Buffer.from(name ?? ''),
    json?.path ?? null,
    json?.value ?? null,
  ]
}
