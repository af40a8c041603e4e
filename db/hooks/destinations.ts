import Type from 'typebox'
import { exec, many, nullable, one, optional, sqlFile, Timestamp } from '../sql-file.ts'
import { StoredEvent } from './events.ts'

/** What a sender needs to know of a destination. `failed`: failures disabled it. */
export const DestinationTarget = Type.Object({
  name: Type.String(),
  /** `replay`: a job, which gets what was found for it once. */
  kind: Type.Enum(['standing', 'replay']),
  url: Type.String(),
  ordered: Type.Boolean(),
  rate: nullable(Type.Integer()),
  enabled: Type.Boolean(),
  failed: Type.Boolean(),
})
export type DestinationTarget = Type.Static<typeof DestinationTarget>

/** A destination with its counts; `waiting` and `dead` are counted up to a limit. */
export const Destination = Type.Object({
  name: Type.String(),
  url: Type.String(),
  provider: nullable(Type.String()),
  event_type: nullable(Type.String()),
  json: nullable(Type.String()),
  ordered: Type.Boolean(),
  rate: nullable(Type.Integer()),
  created_at: Timestamp,
  disabled_at: nullable(Timestamp),
  disabled_by: nullable(Type.Enum(['operator', 'failures'])),
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
export type Destination = Type.Static<typeof Destination>

/** An event that this process alone sends to a destination until the claim ends. */
export const ClaimedEvent = Type.Object({
  ...StoredEvent.properties,
  /** Tries before this one. */
  tries: Type.Integer(),
  claimed_until: Timestamp,
})
export type ClaimedEvent = Type.Static<typeof ClaimedEvent>

/** A destination that is behind the log, or has deliveries that are due. */
const Work = Type.Object({
  ...Type.Pick(Destination, ['name', 'position']).properties,
  behind: Type.Boolean(),
  due: Type.Boolean(),
  reads_payloads: Type.Boolean(),
})
export type Work = Type.Static<typeof Work>

const Name = Type.Pick(Destination, ['name'])
const Enabled = Type.Pick(DestinationTarget, ['enabled'])
const Planned = Type.Object({ looked_at: Type.Integer(), planned: Type.Integer() })
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

export const destinationQueries = sqlFile('sql/hooks/destinations.sql', {
  listTargets: many(DestinationTarget, {}),
  listDestinations: many(Destination, { count_up_to: 'int8' }),
  addDestination: optional(Name, {
    name: 'text',
    url: 'text',
    provider: 'text?',
    event_type: 'text?',
    json_path: 'text?',
    json_name: 'text?',
    json_value: 'text?',
    ordered: 'bool',
    rate: 'int4?',
    most: 'int8',
  }),
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
  findWork: many(Work, {}),
  planDeliveries: one(Planned, { name: 'text', last: 'int8', rows: 'int8' }),
  claimDeliveries: many(ClaimedEvent, { name: 'text', limit: 'int4', bytes: 'int8' }),
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
