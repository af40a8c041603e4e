import * as Type from '../../../kernel/schema.ts'
import { nullable, Timestamp, exec, many, one, optional, sqlFile } from '../../sql-file.ts'

/**
 * What a check knows. `warn` and `fail`: not as it should be, by the level of the check. `unknown`:
 * it had no means to look, or nobody has looked lately.
 */
export const State = Type.Enum(['ok', 'warn', 'fail', 'unknown'])
export type State = Type.Static<typeof State>

/** What defines a check: the inventory file, or what was made by hand. */
export const Source = Type.Enum(['file', 'hand'])
export type Source = Type.Static<typeof Source>

const Id = Type.Integer()
const Named = { service: Type.String(), name: Type.String() }

/** A check of the inventory with its state, which began at `since`. */
export const CheckState = Type.Object({
  id: Id,
  ...Named,
  type: Type.String(),
  every_s: Type.Integer(),
  source: Source,
  state: State,
  since: Timestamp,
  message: Type.String(),
  ms: Type.Integer(),
  checked_at: nullable(Timestamp),
  asked_at: nullable(Timestamp),
  session_id: nullable(Type.Integer()),
  muted_until: nullable(Timestamp),
})
export type CheckState = Type.Static<typeof CheckState>

/** A check that this instance runs now. `asked`: somebody has asked for this run. */
const ClaimedCheck = Type.Object({
  id: Id,
  ...Named,
  claimed_until: Timestamp,
  asked: Type.Boolean(),
  late_s: Type.Number(),
})
export type ClaimedCheck = Type.Static<typeof ClaimedCheck>

/** A check before a result counts. `told_event`: its notice reported that the check fails. */
const HeldCheck = Type.Object({
  id: Id,
  ...Named,
  state: State,
  checked_at: nullable(Timestamp),
  opposing: Type.Integer(),
  told_event: nullable(Type.Integer()),
  claimed_until: nullable(Timestamp),
  muted: Type.Boolean(),
  begun: Type.Integer(),
})
export type HeldCheck = Type.Static<typeof HeldCheck>

/** A check with its state now and `before`. */
const Change = Type.Object({ ...Named, before: State, state: State })
export type Change = Type.Static<typeof Change>

/** A change of the state of a check, with what it found then. */
const Transition = Type.Object({
  ...Named,
  at: Timestamp,
  before: State,
  state: State,
  message: Type.String(),
})
export type Transition = Type.Static<typeof Transition>

/**
 * What the job of a heartbeat last said. `beat_at`: when it ended; `begun_at`: when it began;
 * `first_beat_at`: when it first called. `beat_failed`: it has not succeeded since it failed, or
 * since a run did not end in time. `state` is the check's.
 */
export const Beat = Type.Object({
  beat_at: nullable(Timestamp),
  beat_failed: Type.Boolean(),
  beat_ms: nullable(Type.Integer()),
  beat_text: Type.String(),
  begun_at: nullable(Timestamp),
  first_beat_at: nullable(Timestamp),
  state: State,
})
export type Beat = Type.Static<typeof Beat>

/** Results of an hour or a day. The times are of runs that found something. */
export const Count = Type.Object({
  start: Timestamp,
  runs: Type.Integer(),
  failures: Type.Integer(),
  warnings: Type.Integer(),
  unknown: Type.Integer(),
  ms_min: nullable(Type.Integer()),
  ms_mean: nullable(Type.Integer()),
  ms_max: nullable(Type.Integer()),
})
export type Count = Type.Static<typeof Count>

const CountOfCheck = Type.Object({ check_id: Id, ...Count.properties })
export type CountOfCheck = Type.Static<typeof CountOfCheck>

/** The results of all checks of a service in an hour. */
const HourSum = Type.Object({
  service: Type.String(),
  ...Type.Pick(Count, ['start', 'runs', 'failures', 'unknown']).properties,
})
export type HourSum = Type.Static<typeof HourSum>

/** A time in which a check had a state. `ended_at` is null while it lasts. */
export const Period = Type.Object({
  id: Id,
  state: State,
  began_at: Timestamp,
  ended_at: nullable(Timestamp),
  message: Type.String(),
  last_message: nullable(Type.String()),
})
export type Period = Type.Static<typeof Period>

const Beginning = Type.Object({ check_id: Id, began_at: Timestamp })

const Failure = Type.Object({
  service: Type.String(),
  began_at: Timestamp,
  ended_at: nullable(Timestamp),
})
export type Failure = Type.Static<typeof Failure>

/** Encrypted values in base64, by the names of their headers. */
const SealedHeaders = Type.Record(Type.String())
export type SealedHeaders = Type.Static<typeof SealedHeaders>

/** The definition of a check, as the inventory file would have it. */
const Definition = Type.Record(Type.Unknown())
export type Definition = Readonly<Type.Static<typeof Definition>>

/** A check that was made by hand, without its state. */
const StoredDefinition = Type.Object({
  id: Id,
  ...Named,
  definition: Definition,
  headers: SealedHeaders,
})
export type StoredDefinition = Type.Static<typeof StoredDefinition>

/** A check with what was made by hand of it, if anything was. */
const HeldDefinition = Type.Object({
  ...StoredDefinition.properties,
  source: Source,
  definition: nullable(Definition),
})
export type HeldDefinition = Type.Static<typeof HeldDefinition>

/** A check, or one of a service, that a text refers to. */
const Reference = Type.Object({ id: Id, ...Named, exact: Type.Boolean() })

/** A run that somebody has asked for; null once it has ended. */
const Asked = Type.Object({ asked_at: nullable(Timestamp), running: Type.Boolean() })

const written = {
  type: 'text',
  every_s: 'int4',
  version: 'text',
  definition: 'jsonb',
  headers: 'jsonb',
  now: 'timestamptz',
} as const

export const checkQueries = sqlFile('sql/ops/watch/checks.sql', {
  syncChecks: exec({ checks: 'jsonb', now: 'timestamptz' }),
  takeLostChecks: many(Type.Object({ id: Id, ...Named }), { limit: 'int8' }),
  findLate: one(Type.Object({ late: Type.Boolean() }), { now: 'timestamptz', seconds: 'int4' }),
  claimChecks: many(ClaimedCheck, {
    now: 'timestamptz',
    seconds: 'int4',
    network_types: 'jsonb',
    network: 'bool',
    limit: 'int8',
  }),
  lockChecks: many(HeldCheck, { checks: 'jsonb', now: 'timestamptz', limit: 'int8' }),
  saveResults: exec({ results: 'jsonb', now: 'timestamptz', session: 'int8?' }),
  beginPeriods: exec({ ids: 'jsonb' }),
  saveNotifiedEvent: exec({ id: 'int8', event: 'int8?', now: 'timestamptz' }),
  listChecks: many(CheckState, { id: 'int8?', now: 'timestamptz', limit: 'int8' }),
  saveBeat: optional(Type.Object({ id: Id }), {
    service: 'text',
    name: 'text',
    beat: 'text',
    text: 'text',
    grace_s: 'int4',
    now: 'timestamptz',
  }),
  findBeat: optional(Beat, { service: 'text', name: 'text' }),
  listCounts: many(CountOfCheck, {
    ids: 'jsonb',
    span: 'text',
    since: 'timestamptz',
    each: 'int8',
    limit: 'int8',
  }),
  sumHours: many(HourSum, {
    services: 'jsonb',
    since: 'timestamptz',
    each: 'int8',
    limit: 'int8',
  }),
  listPeriods: many(Period, { id: 'int8', before: 'int8?', limit: 'int8' }),
  listFirstPeriods: many(Beginning, { ids: 'jsonb', limit: 'int8' }),
  listFailures: many(Failure, { services: 'jsonb', since: 'timestamptz', limit: 'int8' }),
  listChanges: many(Change, { since: 'timestamptz', limit: 'int8' }),
  listTransitions: many(Transition, { since: 'timestamptz', limit: 'int8' }),
  askCheck: optional(Type.Object({ id: Id }), { id: 'int8', now: 'timestamptz' }),
  listDefinitions: many(StoredDefinition, { limit: 'int8' }),
  addDefinition: optional(Type.Object({ id: Id }), {
    service: 'text',
    name: 'text',
    most: 'int8',
    ...written,
  }),
  readAsked: optional(Asked, { id: 'int8', now: 'timestamptz' }),
  findDefinition: optional(HeldDefinition, { id: 'int8' }),
  lockDefinition: optional(HeldDefinition, { id: 'int8' }),
  setDefinition: exec({ id: 'int8', ...written }),
  removeDefinition: exec({ id: 'int8', now: 'timestamptz' }),
  findByReference: many(Reference, { reference: 'text', limit: 'int8' }),
})
