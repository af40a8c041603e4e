import Type from 'typebox'
import { Bytes, nullable, Timestamp, many, one, optional, sqlFile } from '../sql-file.ts'
import { TrustMode } from './providers.ts'

/** hooks.md section 2, EventSummary. */
export const EventSummary = Type.Object({
  id: Type.Integer(),
  provider: Type.String(),
  event_type: nullable(Type.String()),
  trust_mode: TrustMode,
  verified: Type.Boolean(),
  payload_size: Type.Integer(),
  received_at: Timestamp,
})
export type EventSummary = Type.Static<typeof EventSummary>

/** An event with everything that is stored of it. */
export const StoredEvent = Type.Object({
  ...EventSummary.properties,
  verify_detail: nullable(Type.String()),
  external_id: nullable(Type.String()),
  content_type: nullable(Type.String()),
  source_ip: nullable(Type.String()),
  headers: Type.Record(Type.String(), Type.String()),
  payload: Bytes,
  attempts: Type.Integer(),
})
export type StoredEvent = Type.Static<typeof StoredEvent>

/** A place in the log: below it are the events that are older, or as old with a lower id. */
export const Position = Type.Object({ received_at: Timestamp, id: Type.Integer() })
export type Position = Type.Static<typeof Position>

const StreamBounds = Type.Object({
  newest: Type.Integer(),
  pruned_through: Type.Integer(),
  before_tail: Type.Integer(),
})

const Id = Type.Object({ id: Type.Integer() })
const before = { before_time: 'timestamptz', before_id: 'int8' } as const
const since = { since_time: 'timestamptz?', since_id: 'int8?' } as const
const filter = { provider: 'text?', event_type: 'text?' } as const
const payload = { text: 'bytea?', member: 'bytea?', path: 'text?', value: 'text?' } as const
const page = { ...before, ...since, limit: 'int8' } as const

export const eventQueries = sqlFile('sql/hooks/events.sql', {
  findEvent: optional(StoredEvent, { id: 'int8' }),
  findEventStart: optional(StoredEvent, { id: 'int8', bytes: 'int4' }),
  findSameBody: optional(Id, { id: 'int8' }),
  listEvents: many(EventSummary, page),
  listEventsOfProvider: many(EventSummary, { ...page, provider: 'text' }),
  listEventsOfType: many(EventSummary, { ...page, event_type: 'text', provider: 'text?' }),
  searchWindowEnd: optional(Position, { ...before, rows: 'int8', bytes: 'int8' }),
  searchWindowThrough: optional(Id, { after: 'int8', last: 'int8', bytes: 'int8' }),
  findIdBelow: optional(Id, { from_id: 'int8', ...before, ids: 'int8' }),
  searchEvents: many(EventSummary, {
    ...{ ...page, end_time: 'timestamptz', end_id: 'int8' },
    ...filter,
    ...payload,
  }),
  listEventsAfter: many(EventSummary, { after: 'int8', limit: 'int8' }),
  findEventAfter: optional(StoredEvent, { after: 'int8', last: 'int8', ...filter, ...payload }),
  streamBounds: one(StreamBounds, { replayed: 'int8' }),
})
