import Type from 'typebox'
import { Bytes, nullable, Timestamp } from '../rows.ts'
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
/** An event with everything that is stored of it. */
export type StoredEvent = Type.Static<typeof StoredEvent>

export const Endpoint = Type.Object({
  name: Type.String(),
  may_replay: Type.Boolean(),
  created_at: Timestamp,
  last_used_at: nullable(Timestamp),
})
/** An endpoint of the tool protocol as an operator sees it. */
export type Endpoint = Type.Static<typeof Endpoint>

export const EndpointKey = Type.Object({
  name: Type.String(),
  token_hash: Bytes,
  may_replay: Type.Boolean(),
})
/** What a request to an endpoint is checked against. */
export type EndpointKey = Type.Static<typeof EndpointKey>

export const Attempt = Type.Object({
  id: Type.Integer(),
  kind: Type.Union([Type.Literal('replay'), Type.Literal('forward')]),
  target: Type.String(),
  outcome: Type.Union([Type.Literal('delivered'), Type.Literal('failed'), Type.Literal('refused')]),
  status: nullable(Type.Integer()),
  ms: Type.Integer(),
  detail: nullable(Type.String()),
  at: Timestamp,
})
/** One time that an event was sent on. `refused`: nothing was connected to; `ms` until the answer. */
export type Attempt = Type.Static<typeof Attempt>

export const Attached = Type.Object({ position: Type.Integer(), connection: Type.Integer() })
/** Where a forwarder stands that has just connected; its first connection is 1. */
export type Attached = Type.Static<typeof Attached>

export const ForwarderState = Type.Object({
  name: Type.String(),
  position: Type.Integer(),
  updated_at: Timestamp,
  waiting: Type.Integer(),
})
/** Where a forwarder stands; `waiting` events are above that, wanted or not, counted up to a limit. */
export type ForwarderState = Type.Static<typeof ForwarderState>

export const Connection = Type.Object({ name: Type.String(), connection: Type.Integer() })
/** One connection of a forwarder; the one with the highest number has the name. */
export type Connection = Type.Static<typeof Connection>

export const Position = Type.Object({ received_at: Timestamp, id: Type.Integer() })
/** A place in the log's order: below it come the events that are older, or as old with a lower id. */
export type Position = Type.Static<typeof Position>

export const StreamBounds = Type.Object({
  newest: Type.Integer(),
  pruned_through: Type.Integer(),
  before_tail: Type.Integer(),
})
/** Where a live stream may start; see the query `streamBounds`. */
export type StreamBounds = Type.Static<typeof StreamBounds>
