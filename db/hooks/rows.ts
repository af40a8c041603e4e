import Type from 'typebox'
import { Bytes, nullable, Timestamp } from '../rows.ts'

export const TrustMode = Type.Union([
  Type.Literal('signed'),
  Type.Literal('token'),
  Type.Literal('open'),
  Type.Literal('queue'),
])
export type TrustMode = Type.Static<typeof TrustMode>

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

export const SavedEvent = Type.Object({
  n: Type.Integer(),
  id: Type.Integer(),
  trust_mode: TrustMode,
  verified: Type.Boolean(),
  received_at: Timestamp,
  fresh: Type.Boolean(),
})
/** What the database says of row `n` of a batch; not `fresh` means the delivery was known. */
export type SavedEvent = Type.Static<typeof SavedEvent>

const SecretName = Type.Union([Type.Literal('current'), Type.Literal('previous')])
/** Which of a provider's secrets a delivery was sent with. */
export type SecretName = Type.Static<typeof SecretName>

export const Provider = Type.Object({
  name: Type.String(),
  family: Type.Union([Type.Literal('webhook'), Type.Literal('queue')]),
  trust_mode: TrustMode,
  enabled: Type.Boolean(),
  token_hash: nullable(Bytes),
  signing_secret: nullable(Bytes),
  retired_until: nullable(Timestamp),
  rotated_at: nullable(Timestamp),
  last_secret: nullable(SecretName),
  last_secret_at: nullable(Timestamp),
  expected_interval_s: nullable(Type.Integer()),
  rejection_burst: nullable(Type.Integer()),
  watched_since: nullable(Timestamp),
  recent_count: Type.Integer(),
  last_event_at: nullable(Timestamp),
  heard_at: nullable(Timestamp),
  refused_count: Type.Integer(),
})
/** A row of hooks.providers with its activity. */
export type Provider = Type.Static<typeof Provider>

export const Sender = Type.Object({
  name: Type.String(),
  trust_mode: TrustMode,
  enabled: Type.Boolean(),
  token_hash: nullable(Bytes),
  retired_hash: nullable(Bytes),
  signing_secret: nullable(Bytes),
  retired_signing_secret: nullable(Bytes),
  retired_until: nullable(Timestamp),
  rotated_at: nullable(Timestamp),
  watched: Type.Boolean(),
})
/** What a receiver checks of a provider. */
export type Sender = Type.Static<typeof Sender>

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

export const Activity = Type.Object({
  provider: Type.String(),
  hour: Timestamp,
  events: Type.Integer(),
})
export type Activity = Type.Static<typeof Activity>

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

/** hooks.md section 2, Settings; 0 in a retention field means no limit. */
export const Settings = Type.Object({
  retention_max_age_days: Type.Integer({ minimum: 0, maximum: 36_500 }),
  retention_max_rows: Type.Integer({ minimum: 0, maximum: 2_147_483_647 }),
  sse_retry_ms: Type.Integer({ minimum: 250, maximum: 3_600_000 }),
  replay_default_target: nullable(Type.String({ format: 'uri' })),
})
export type Settings = Type.Static<typeof Settings>

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
