import Type from 'typebox'
import { nullable, Timestamp, exec, many, one, optional, sqlFile } from '../sql-file.ts'

export const AlertOutcome = Type.Enum(['received', 'acknowledged', 'failed', 'triggered'])
export type AlertOutcome = Type.Static<typeof AlertOutcome>

/**
 * All deliveries of one alert. Title and payload are those of the newest delivery; `texts` counts
 * the different texts that are kept.
 */
export const Alert = Type.Object({
  id: Type.Integer(),
  fingerprint: Type.String(),
  source: nullable(Type.String()),
  title: Type.String(),
  payload: Type.String(),
  count: Type.Integer(),
  first_seen: Timestamp,
  last_seen: Timestamp,
  outcome: AlertOutcome,
  problem: nullable(Type.String()),
  session_id: nullable(Type.Integer()),
  texts: Type.Integer(),
  /** Characters of the whole payload. */
  length: Type.Integer(),
})
export type Alert = Type.Static<typeof Alert>

/** One of the texts in which an alert was delivered. */
const AlertText = Type.Pick(Alert, [
  ...(['title', 'payload', 'length', 'count', 'first_seen', 'last_seen'] as const),
])
export type AlertText = Type.Static<typeof AlertText>

/** A delivery of an alert: the alert's id, and the number of the delivery. */
const Delivery = Type.Pick(Alert, ['id', 'count'])
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

const AdoptedAlert = Type.Object({
  ...Delivery.properties,
  tier: Type.Integer(),
  title: Type.String(),
  payload: Type.String(),
})

/** The process that reads an alert. */
const reader = { holder: 'text', machine: 'text' } as const
const listed = { offset: 'int8', limit: 'int8' } as const

export const alertQueries = sqlFile('sql/ops/alerts.sql', {
  saveAlert: one(Delivery, {
    fingerprint: 'text',
    source: 'text?',
    content: 'text',
    title: 'text',
    payload: 'text',
    outcome: 'text',
    tier: 'int2',
    now: 'timestamptz',
    ...reader,
  }),
  noteAlert: exec({
    id: 'int8',
    count: 'int4',
    outcome: 'text',
    problem: 'text?',
    ...reader,
  }),
  claimTelling: optional(Type.Pick(Alert, ['id']), { id: 'int8', now: 'timestamptz' }),
  linkSession: exec({ id: 'int8', session: 'int8' }),
  reopenAlert: exec({ session: 'int8', problem: 'text' }),
  findSessionAlert: optional(Type.Pick(Alert, ['title', 'source', 'payload']), {
    session: 'int8',
  }),
  findAlertOf: optional(Type.Pick(Alert, ['id', 'title']), { session: 'int8' }),
  listAlertsInProgress: many(AlertInProgress, { limit: 'int8' }),
  adoptAlert: optional(AdoptedAlert, {
    id: 'int8',
    reading_since: 'timestamptz',
    ...reader,
  }),
  listAlerts: many(Alert, { characters: 'int4', ...listed }),
  countAlerts: one(Type.Object({ count: Type.Integer() }), { limit: 'int8' }),
  findAlert: optional(Alert, { id: 'int8' }),
  listAlertTexts: many(AlertText, { alert: 'int8', characters: 'int4', ...listed }),
  takeBriefLock: optional(Type.Object({ brief_until: Timestamp }), {
    ...reader,
    ms: 'float8',
  }),
  freeBriefLock: exec(reader),
  addBriefCost: exec({ now: 'timestamptz', cost_usd: 'float8' }),
})
