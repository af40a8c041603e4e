import * as Type from '../../../kernel/schema.ts'
import { Bytes, exec, many, nullable, one, optional, sqlFile, Timestamp } from '../../sql-file.ts'
import { StoredEvent } from '../log/events.ts'

/** The credentials of a destination as they are stored. */
export const SealedCredentials = Type.Object({
  sign_scheme: nullable(Type.String()),
  sign_secret: nullable(Bytes),
  auth: nullable(Bytes),
  /** Encrypted values as base64. */
  headers: Type.Record(Type.String()),
})
export type SealedCredentials = Type.Static<typeof SealedCredentials>

/** What stands for a secret where a destination is shown. */
const Configured = Type.Enum(['configured'])

/** What a sender needs to know of a destination. `failed`: failures disabled it. */
export const DestinationTarget = Type.Object({
  name: Type.String(),
  /** `replay`: a job, which gets what was found for it once. */
  kind: Type.Enum(['standing', 'replay']),
  url: Type.String(),
  ordered: Type.Boolean(),
  rate: nullable(Type.Integer()),
  timeout_s: Type.Integer(),
  body_template: nullable(Type.String()),
  ...SealedCredentials.properties,
  enabled: Type.Boolean(),
  failed: Type.Boolean(),
})
export type DestinationTarget = Type.Static<typeof DestinationTarget>

/** What deliveries make of a destination; `waiting` and `dead` are counted up to a limit. */
const Measures = Type.Object({
  /** Failures have disabled it, or its newest attempt failed. */
  failing: Type.Boolean(),
  /** Every event up to this id was considered. */
  position: Type.Integer(),
  delivered: Type.Integer(),
  waiting: Type.Integer(),
  dead: Type.Integer(),
  /** Wanted events that retention removed before they were delivered, and the highest of them. */
  gap: Type.Integer(),
  gap_through: nullable(Type.Integer()),
  /** When the oldest waiting event was received. */
  oldest_at: nullable(Timestamp),
  /** The newest attempt that has ended. */
  last_at: nullable(Timestamp),
  last_status: nullable(Type.Integer()),
  last_detail: nullable(Type.String()),
  mean_ms: nullable(Type.Number()),
})

/** The members of a destination that change by themselves. */
export const MEASURED = Object.keys(Measures.properties) as (keyof typeof Measures.properties)[]

/** A destination as it is shown. */
export const Destination = Type.Object({
  name: Type.String(),
  /** Another one after each edit. */
  version: Type.String(),
  url: Type.String(),
  providers: Type.Array(Type.String()),
  event_types: Type.Array(Type.String()),
  json: Type.Array(Type.String()),
  ordered: Type.Boolean(),
  rate: nullable(Type.Integer()),
  timeout_s: Type.Integer(),
  body_template: nullable(Type.String()),
  sign_with: nullable(Type.Object({ scheme: Type.String(), secret: Configured })),
  headers: Type.Record(Configured),
  authorization: nullable(Configured),
  created_at: Timestamp,
  disabled_at: nullable(Timestamp),
  disabled_by: nullable(Type.Enum(['operator', 'failures'])),
  ...Measures.properties,
})
export type Destination = Type.Static<typeof Destination>

/** A destination that needs somebody. */
const FailingDestination = Type.Pick(Destination, [
  'name',
  'disabled_by',
  'last_at',
  'last_status',
  'last_detail',
])
export type FailingDestination = Type.Static<typeof FailingDestination>

/** How many events filters want, of how many. */
const Matches = Type.Object({ matched: Type.Integer(), events: Type.Integer() })
export type Matches = Type.Static<typeof Matches>

/** A delivery that waits or was given up; `last_…` is its newest attempt. */
export const Delivery = Type.Object({
  event_id: Type.Integer(),
  state: Type.Enum(['waiting', 'dead']),
  provider: Type.String(),
  event_type: nullable(Type.String()),
  received_at: Timestamp,
  tries: Type.Integer(),
  /** When it is tried next; null for a dead one. */
  next_at: nullable(Timestamp),
  last_at: nullable(Timestamp),
  last_status: nullable(Type.Integer()),
  last_detail: nullable(Type.String()),
})
export type Delivery = Type.Static<typeof Delivery>

/** An event that this process alone sends to a destination until the claim ends. */
export const ClaimedEvent = Type.Object({
  ...StoredEvent.properties,
  /** Tries before this one. */
  tries: Type.Integer(),
  claimed_until: Timestamp,
})
export type ClaimedEvent = Type.Static<typeof ClaimedEvent>

/** What came of a claimed delivery, as `settleDeliveries` takes it. */
export interface DeliveryResult extends Pick<ClaimedEvent, 'claimed_until'> {
  event_id: number
  fate: 'delivered' | 'again' | 'dead' | 'gone' | 'released'
  /** Null when it was not tried. */
  outcome: 'delivered' | 'failed' | 'refused' | null
  status: number | null
  ms: number
  detail: string | null
  /** The beginning of the answer to a try that failed; of others none is kept, they are many. */
  answer: string | null
  /** Milliseconds until the next try, where there is one. */
  wait_ms: number
  at: Date
}

/** A destination that is behind the log, or has deliveries that are due. */
const Work = Type.Object({
  ...Type.Pick(Destination, ['name', 'position']).properties,
  behind: Type.Boolean(),
  due: Type.Boolean(),
  reads_payloads: Type.Boolean(),
})
export type Work = Type.Static<typeof Work>

/** What an edit needs to know of a destination. */
const Config = Type.Object({
  ...Type.Pick(Destination, ['version', 'url', 'providers', 'position']).properties,
  ...SealedCredentials.properties,
})

/** What is configured, as the queries take it. */
const config = {
  name: 'text',
  url: 'text',
  providers: 'jsonb',
  event_types: 'jsonb',
  members: 'jsonb',
  ordered: 'bool',
  rate: 'int4?',
  timeout_s: 'int4',
  body_template: 'text?',
  sign_scheme: 'text?',
  sign_secret: 'bytea?',
  auth: 'bytea?',
  headers: 'jsonb',
  position: 'int8?',
} as const

const Name = Type.Pick(Destination, ['name'])
const Enabled = Type.Pick(DestinationTarget, ['enabled'])
/** A destination whose position moved, and how many deliveries were planned for it. */
const Planned = Type.Object({ name: Type.String(), planned: Type.Integer() })
const Retried = Type.Object({
  retried: Type.Integer(),
  /** The event to go on from. */
  next_from: nullable(Type.Integer()),
})
const GivenUp = Type.Object({
  name: Type.String(),
  events: Type.Integer(),
  through: Type.Integer(),
})

export const destinationQueries = sqlFile('sql/hooks/send/destinations.sql', {
  listTargets: many(DestinationTarget, {}),
  listDestinations: many(Destination, { name: 'text?', count_up_to: 'int8' }),
  listFailing: many(FailingDestination, {}),
  countMatches: one(Matches, { filters: 'jsonb', rows: 'int8', bytes: 'int8' }),
  lockConfig: optional(Config, { name: 'text' }),
  addDestination: optional(Name, { ...config, most: 'int8' }),
  setDestination: exec(config),
  enableDestination: optional(Name, { name: 'text', enabled: 'bool' }),
  removeDestination: optional(Name, { name: 'text' }),
  listRemovals: many(Name, {}),
  removeDeliveries: one(Type.Pick(Retried, ['next_from']), { name: 'text', from: 'int8' }),
  endRemoval: exec({ name: 'text' }),
  lockDestination: optional(Type.Object({ position: Type.Integer(), enabled: Type.Boolean() }), {
    name: 'text',
  }),
  lockDestinations: many(Name, {}),
  retryDeliveries: one(Retried, {
    name: 'text',
    from: 'int8',
    dead: 'bool',
  }),
  retryChosen: one(Type.Pick(Retried, ['retried']), { name: 'text', events: 'jsonb' }),
  listDeliveries: many(Delivery, { name: 'text', dead: 'bool', after: 'int8', limit: 'int8' }),
  findWork: many(Work, {}),
  lockToPlan: many(Type.Pick(Destination, ['name', 'position']), { names: 'jsonb' }),
  planDeliveries: many(Planned, { names: 'jsonb', last: 'int8', rows: 'int8' }),
  claimDeliveries: many(ClaimedEvent, {
    name: 'text',
    limit: 'int4',
    bytes: 'int8',
    seconds: 'int4',
  }),
  settleDeliveries: optional(Enabled, {
    name: 'text',
    kind: 'text',
    target: 'text',
    results: 'jsonb',
    most: 'int8',
  }),
  firstOwed: one(Type.Object({ id: nullable(Type.Integer()) }), {}),
  giveUpEvents: many(GivenUp, { below: 'int8', limit: 'int8' }),
})
