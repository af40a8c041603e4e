import * as Type from '../../../kernel/schema.ts'
import { Bytes, nullable, Timestamp, many, one, optional, sqlFile } from '../../sql-file.ts'
import { TrustMode } from '../receive/providers.ts'

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
  /** Null for an event of a queue. */
  method: nullable(Type.String()),
  /** Secrets are redacted; null without a query. */
  query: nullable(Type.String()),
  /** JSON: a list of [name, value], in the order and case in which they came. */
  headers: Type.String(),
  payload: Bytes,
  /** The payload as text in UTF-8, where that is another one; of a long text the beginning. */
  reading: nullable(Bytes),
  /** How the payload was read, or why it can't be; null as it was sent. */
  read_as: nullable(Type.String()),
  attempts: Type.Integer(),
})
export type StoredEvent = Type.Static<typeof StoredEvent>

const EventStart = Type.Object({
  ...StoredEvent.properties,
  /** Null for an event of a queue. */
  path: nullable(Type.String()),
  /** Bytes of the whole reading. */
  reading_size: nullable(Type.Integer()),
})
export type RequestLine = Pick<Type.Static<typeof EventStart>, 'method' | 'path' | 'query'>

/** The events before and after an event, by id. */
const Neighbours = Type.Object({
  previous: nullable(Type.Integer()),
  next: nullable(Type.Integer()),
  previous_of_provider: nullable(Type.Integer()),
  next_of_provider: nullable(Type.Integer()),
})
export type Neighbours = Type.Static<typeof Neighbours>

const StreamBounds = Type.Object({
  newest: Type.Integer(),
  pruned_through: Type.Integer(),
  before_tail: Type.Integer(),
})

const Id = Type.Object({ id: Type.Integer() })
const ReceivedAt = Type.Object({ received_at: Timestamp })
const CountedIds = Type.Object({ count: Type.Integer(), newest: nullable(Type.Integer()) })
const PayloadPart = Type.Object({ part: Bytes, payload_size: Type.Integer() })
/** What the preview of an event is made from: the beginning of what is read of it. */
const EventBeginning = Type.Object({
  ...Type.Pick(StoredEvent, ['id', 'method', 'query']).properties,
  start: Bytes,
  /** Bytes of which `start` is the beginning. */
  size: Type.Integer(),
  /** Why the payload can't be read, in a word; null where it can be. */
  problem: nullable(Type.String()),
})
export type EventBeginning = Type.Static<typeof EventBeginning>
/** The bytes around a text in a payload, and the place of the first of them, from 1. */
const EventMatch = Type.Object({ id: Type.Integer(), start: Type.Integer(), around: Bytes })
/** Where a step of a search ended. */
export const SearchedTo = Type.Object({ id: Type.Integer(), received_at: Timestamp })
const EventType = Type.Object({ event_type: Type.String() })
/** The known types that a filter means. */
const TypeMatches = Type.Object({ count: Type.Integer(), are_all: Type.Boolean() })
const filter = { provider: 'text?', event_type: 'text?' } as const
const payload = { text: 'bytea?', member: 'bytea?', members: 'jsonb?' } as const
/** What is tested event by event. */
const tests = {
  ...payload,
  verified: 'bool?',
  test_type: 'text?',
  header: 'text?',
  header_value: 'text?',
} as const
/** Ids below `before`, from `from` on. */
const range = { ...filter, type_like: 'text?', before: 'int8', from: 'int8' } as const

export const eventQueries = sqlFile('sql/hooks/log/events.sql', {
  findEvent: optional(StoredEvent, { id: 'int8' }),
  findEventStart: optional(EventStart, { id: 'int8', bytes: 'int4' }),
  findPayloadPart: optional(PayloadPart, { id: 'int8', skipped: 'int4', bytes: 'int4' }),
  findNeighbours: optional(Neighbours, { id: 'int8' }),
  findSameBody: optional(Type.Pick(EventSummary, ['id', 'event_type']), { id: 'int8' }),
  firstIdSince: one(Id, { since: 'timestamptz' }),
  newestInFuture: optional(Type.Object({ id: Type.Integer(), received_at: Timestamp }), {}),
  listEvents: many(EventSummary, { ...range, limit: 'int8' }),
  listTimes: many(ReceivedAt, { ...range, limit: 'int8' }),
  countIds: one(CountedIds, { ...range, limit: 'int8' }),
  listUnfilteredTimes: many(ReceivedAt, { before: 'int8', from: 'int8', limit: 'int8' }),
  listUnfiltered: many(EventSummary, { before: 'int8', from: 'int8', limit: 'int8' }),
  listBeginnings: many(EventBeginning, { ids: 'jsonb', bytes: 'int4' }),
  listMatches: many(EventMatch, {
    ids: 'jsonb',
    text: 'bytea',
    searched: 'int4',
    before: 'int4',
    around: 'int4',
  }),
  listTypes: many(EventType, { provider: 'text?', limit: 'int8' }),
  matchTypes: one(TypeMatches, {
    provider: 'text?',
    type_like: 'text',
    limit: 'int8',
    most: 'int8',
  }),
  listStored: many(StoredEvent, { ids: 'jsonb' }),
  searchWindowEnd: optional(SearchedTo, { ...range, rows: 'int8', bytes: 'int8' }),
  searchWindowThrough: optional(Id, { after: 'int8', rows: 'int8', bytes: 'int8' }),
  searchEvents: many(EventSummary, { ...range, ...tests, rows: 'int8', limit: 'int8' }),
  listEventsAfter: many(EventSummary, { after: 'int8', limit: 'int8' }),
  findEventAfter: optional(StoredEvent, { after: 'int8', last: 'int8', ...filter, ...payload }),
  streamBounds: one(StreamBounds, { replayed: 'int8' }),
})
