import * as Type from '../../../kernel/schema.ts'
import {
  nullable,
  Timestamp,
  exec,
  many,
  one,
  optional,
  sqlFile,
  filtered,
} from '../../sql-file.ts'

export const AlertOutcome = Type.Enum([
  'received',
  'acknowledged',
  'failed',
  'triggered',
  'waiting',
  'resolved',
  'silenced',
])
export type AlertOutcome = Type.Static<typeof AlertOutcome>

export const AlertState = Type.Enum(['firing', 'resolved'])
export type AlertState = Type.Static<typeof AlertState>

/** What a silence compares with what it matches. */
const Labelled = {
  source: nullable(Type.String()),
  service: nullable(Type.String()),
  title: Type.String(),
  labels: Type.Record(Type.String()),
}
const LabelledAlert = Type.Object(Labelled)
export type LabelledAlert = Type.Static<typeof LabelledAlert>

/**
 * All deliveries of one alert. Title and payload are those of the newest delivery; `texts` counts
 * the different texts that are kept.
 */
export const Alert = Type.Object({
  id: Type.Integer(),
  fingerprint: Type.String(),
  ...Labelled,
  payload: Type.String(),
  count: Type.Integer({ description: 'Deliveries' }),
  first_seen: Timestamp,
  last_seen: Timestamp,
  state: AlertState,
  firing_since: Timestamp,
  resolved_at: nullable(Timestamp),
  firings: Type.Integer({ description: 'How often it began to fire' }),
  outcome: AlertOutcome,
  problem: nullable(Type.String()),
  /** Of one that waits: no session starts before. */
  due_at: nullable(Timestamp),
  /** The newest session that looks or looked into it. */
  session_id: nullable(Type.Integer()),
  texts: Type.Integer(),
  /** Characters of the whole payload. */
  length: Type.Integer(),
})
export type Alert = Type.Static<typeof Alert>

/** One of the texts in which an alert was delivered. */
const AlertText = Type.Object({
  ...Type.Pick(Alert, ['title', 'payload', 'length', 'count', 'first_seen', 'last_seen'])
    .properties,
  number: Type.Integer(),
})
export type AlertText = Type.Static<typeof AlertText>

/** What the next delivery of an alert meets. */
const EarlierAlert = Type.Object({
  ...Type.Pick(Alert, ['id', 'outcome', 'state', 'firing_since', 'session_id']).properties,
  session_at: nullable(Timestamp),
})
export type EarlierAlert = Type.Static<typeof EarlierAlert>

/** How many alerts wait for a session, and how many are being read. */
const InProgress = Type.Object({ waiting: Type.Integer(), reading: Type.Integer() })
export type InProgress = Type.Static<typeof InProgress>

/** A delivery that is read: the alert's id, and the number of the delivery. */
const Delivery = Type.Object({ id: Type.Integer(), reading: Type.Integer() })
export type Delivery = Type.Static<typeof Delivery>

/** An alert whose newest delivery is being read. Its holder is blank while no process reads it. */
const AlertInProgress = Type.Object({
  id: Type.Integer(),
  holder: Type.String(),
  machine: Type.String(),
  reading_since: Timestamp,
  /** Milliseconds since then, by the database's clock. */
  reading_ms: Type.Number(),
})
export type AlertInProgress = Type.Static<typeof AlertInProgress>

/** An alert that this process reads, without a sender that waits for the answer. */
const TakenAlert = Type.Object({
  ...Delivery.properties,
  ...Labelled,
  tier: Type.Integer(),
  waiting_since: nullable(Timestamp),
  payload: Type.String(),
})
export type TakenAlert = Type.Static<typeof TakenAlert>

const UnsilencedAlert = Type.Object({
  id: Type.Integer(),
  silence_id: nullable(Type.Integer()),
  ...Labelled,
})

/** Since when alerts are turned away because too many wait; null while they are not. */
const FullQueue = Type.Object({ queue_full_since: nullable(Timestamp) })

/** The process that reads an alert. */
const reader = { holder: 'text', machine: 'text' } as const
const listed = { offset: 'int8', limit: 'int8' } as const
/** Null for all. */
const filters = { state: 'text?', service: 'text?' } as const

export const alertQueries = sqlFile('sql/ops/alerts/alerts.sql', {
  lockAlerts: exec({}),
  findEarlier: optional(EarlierAlert, { fingerprint: 'text' }),
  countInProgress: one(InProgress, {}),
  saveAlert: one(Type.Pick(Alert, ['id', 'count']), {
    fingerprint: 'text',
    source: 'text?',
    service: 'text?',
    labels: 'jsonb',
    content: 'text',
    title: 'text',
    payload: 'text',
    state: 'text',
    firing_since: 'timestamptz',
    resolved_at: 'timestamptz?',
    now: 'timestamptz',
  }),
  setOutcome: exec({
    id: 'int8',
    outcome: 'text',
    tier: 'int2',
    waiting_since: 'timestamptz?',
    due_at: 'timestamptz?',
    silence: 'int8?',
    ...reader,
  }),
  noteAlert: exec({
    id: 'int8',
    reading: 'int4',
    outcome: 'text',
    problem: 'text?',
    now: 'timestamptz',
    ...reader,
  }),
  readFullQueue: one(FullQueue, {}),
  beginFullQueue: optional(FullQueue, { now: 'timestamptz' }),
  endFullQueue: optional(Type.Object({ only_row: Type.Boolean() }), { most: 'int8' }),
  findOutcome: optional(Type.Pick(Alert, ['outcome']), { id: 'int8' }),
  takeWaiting: optional(TakenAlert, { now: 'timestamptz', ...reader }),
  holdBack: exec({ id: 'int8', reading: 'int4', silence: 'int8', ...reader }),
  listUnsilenced: many(UnsilencedAlert, { now: 'timestamptz', limit: 'int8' }),
  releaseAlert: exec({
    id: 'int8',
    silence: 'int8?',
    next: 'int8?',
    now: 'timestamptz',
  }),
  claimTelling: optional(Type.Pick(Alert, ['id']), { id: 'int8', now: 'timestamptz' }),
  listAlertsInProgress: many(AlertInProgress, { limit: 'int8' }),
  adoptAlert: optional(TakenAlert, {
    id: 'int8',
    reading_since: 'timestamptz',
    ...reader,
  }),
  listAlerts: filtered(many(Alert, { characters: 'int4', ...filters, ...listed })),
  pageAlerts: filtered(
    many(Alert, {
      characters: 'int4',
      ...filters,
      at: 'timestamptz',
      id: 'int8',
      limit: 'int8',
    }),
  ),
  countAlerts: filtered(
    one(Type.Object({ count: Type.Integer() }), { ...filters, limit: 'int8' }),
  ),
  findAlert: optional(Alert, { id: 'int8' }),
  pageAlertTexts: many(AlertText, {
    alert: 'int8',
    characters: 'int4',
    at: 'timestamptz',
    number: 'int8',
    limit: 'int8',
  }),
  takeBriefLock: optional(Type.Object({ brief_until: Timestamp }), {
    ...reader,
    ms: 'float8',
  }),
  freeBriefLock: exec(reader),
  addBriefCost: exec({ now: 'timestamptz', cost_usd: 'float8' }),
})
