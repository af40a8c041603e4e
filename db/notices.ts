import * as Type from '../kernel/schema.ts'
import { Bytes, exec, many, nullable, one, optional, sqlFile, Timestamp } from './sql-file.ts'

export const Level = Type.Enum(['info', 'warning', 'critical'])
export type Level = Type.Static<typeof Level>

/** The service of Gatehouse whose page a notice is about. */
const Site = Type.Enum(['hooks', 'links', 'ops'])
export type Site = Type.Static<typeof Site>

/** What people are told. */
const Notice = Type.Object({
  id: Type.Integer(),
  /** `session`: one that failed or ran out of time. */
  kind: Type.Enum(['event', 'session']),
  session_id: nullable(Type.Integer()),
  level: Level,
  /** What it is about: a service that is checked, `hooks`, `gatehouse`. */
  service: Type.String(),
  message: Type.String(),
  site: Site,
  path: Type.String(),
  created_at: Timestamp,
  /** Whether something begins with it that lasts. */
  lasts: Type.Boolean(),
  /** Of an end: the notice of its beginning. */
  begin_id: nullable(Type.Integer()),
})
export type Notice = Type.Static<typeof Notice>

/** Of these a target gets several as one message, each stage at its own pace. */
const Stage = Type.Enum(['beginning', 'end', 'reminder', 'acknowledgement'])
export type Stage = Type.Static<typeof Stage>

/** What a target gets: a notice, above 0 a reminder of it, -1 that somebody has acknowledged it. */
const DueSend = Type.Object({
  ...Notice.properties,
  number: Type.Integer(),
  stage: Stage,
  /** What lasts, such as `check 7`; null for what does not. Of an end: that of its beginning. */
  key: nullable(Type.String()),
  /** The notice whose key PagerDuty knows it by. */
  incident: Type.Integer(),
})
export type DueSend = Type.Static<typeof DueSend>

/** A notice with what became of it. */
export const ShownNotice = Type.Object({
  ...Notice.properties,
  ended_at: nullable(Timestamp),
  acknowledged_at: nullable(Timestamp),
  acknowledged_by: nullable(Type.String()),
})
export type ShownNotice = Type.Static<typeof ShownNotice>

/** What a target got of a notice. */
export const Send = Type.Object({
  target: Type.String(),
  number: Type.Integer(),
  attempts: Type.Integer(),
  sent_at: nullable(Timestamp),
  problem: nullable(Type.String()),
})
export type Send = Type.Static<typeof Send>

/** The same, of one of several notices. */
const SendOf = Type.Object({ notice_id: Type.Integer(), ...Send.properties })
export type SendOf = Type.Static<typeof SendOf>

/** How fast a target gets what is of a stage. */
const Pace = Type.Object({
  stage: Stage,
  next_at: Timestamp,
  /** Notices that were sent alone since the storm began. */
  alone: Type.Integer(),
  incident: nullable(Type.Integer()),
})
export type Pace = Type.Static<typeof Pace>

/** What is known of a target. */
const TargetState = Type.Object({
  target: Type.String(),
  failing_since: nullable(Timestamp),
  taken_at: nullable(Timestamp),
  waiting: Type.Integer(),
  problem: nullable(Type.String()),
})
export type TargetState = Type.Static<typeof TargetState>

/** A target that has not taken everything. */
const Unsent = Type.Object({
  target: Type.String(),
  count: Type.Integer(),
  newest: Timestamp,
  problem: nullable(Type.String()),
})
export type Unsent = Type.Static<typeof Unsent>

/** What a target gets, and when. */
const TargetRules = Type.Object({
  /** Null for all. */
  services: nullable(Type.Array(Type.String())),
  levels: nullable(Type.Array(Level)),
  quiet: nullable(Type.String()),
  after_s: Type.Integer(),
  remind_s: nullable(Type.Integer()),
})
export type TargetRules = Type.Static<typeof TargetRules>

/** A target as it is stored: address and token are encrypted. */
const StoredTarget = Type.Object({
  name: Type.String(),
  kind: Type.String(),
  host: Type.String(),
  address: Bytes,
  token: nullable(Bytes),
  ...TargetRules.properties,
  created_at: Timestamp,
})
export type StoredTarget = Type.Static<typeof StoredTarget>

const targetRow = {
  name: 'text',
  kind: 'text',
  host: 'text',
  address: 'bytea',
  token: 'bytea?',
  services: 'jsonb?',
  levels: 'jsonb?',
  quiet: 'text?',
  after_s: 'int4',
  remind_s: 'int4?',
} as const

const Id = Type.Object({ id: Type.Integer() })
const notice = { message: 'text', session: 'int8?', now: 'timestamptz' } as const

export const noticeQueries = sqlFile('sql/notices.sql', {
  lockNotices: exec({}),
  addNotice: optional(Id, {
    ...notice,
    service: 'text',
    level: 'text',
    site: 'text',
    path: 'text',
    key: 'text?',
    about_target: 'text?',
  }),
  endNotice: exec({ ...notice, key: 'text' }),
  listLasting: many(Type.Object({ key: Type.String(), message: Type.String() }), {
    prefix: 'text',
    limit: 'int8',
  }),
  countNotices: one(Type.Object({ notices: Type.Integer(), same: Type.Boolean() }), {
    session: 'int8',
    service: 'text?',
    message: 'text',
    since: 'timestamptz',
  }),
  planSends: exec({ targets: 'jsonb', now: 'timestamptz' }),
  planReminders: exec({ targets: 'jsonb', now: 'timestamptz' }),
  planAcknowledgements: exec({ targets: 'jsonb', now: 'timestamptz' }),
  hasDue: one(Type.Object({ due: Type.Boolean() }), { target: 'text', now: 'timestamptz' }),
  lockTarget: exec({ target: 'text' }),
  listPaces: many(Pace, { target: 'text', limit: 'int8' }),
  listDue: many(DueSend, { target: 'text', now: 'timestamptz', quiet: 'bool', limit: 'int8' }),
  claimSends: exec({ target: 'text', sends: 'jsonb', incident: 'int8?', now: 'timestamptz' }),
  setPace: exec({
    target: 'text',
    stage: 'text',
    next_at: 'timestamptz',
    alone: 'int4',
    incident: 'int8?',
  }),
  finishSends: exec({
    target: 'text',
    sends: 'jsonb',
    problem: 'text?',
    now: 'timestamptz',
    next_at: 'timestamptz',
  }),
  listFailingTargets: many(Type.Object({ target: Type.String() }), {
    since: 'timestamptz',
    names: 'jsonb',
    limit: 'int8',
  }),
  listUnsent: many(Unsent, { limit: 'int8' }),
  addNoticeTarget: optional(Type.Object({ name: Type.String() }), {
    ...targetRow,
    now: 'timestamptz',
    most: 'int8',
  }),
  setNoticeTarget: exec(targetRow),
  removeNoticeTarget: optional(Type.Object({ name: Type.String() }), { name: 'text' }),
  findNoticeTarget: optional(StoredTarget, { name: 'text' }),
  listNoticeTargets: many(StoredTarget, { limit: 'int8' }),
  findNotice: optional(ShownNotice, { id: 'int8' }),
  listNotices: many(ShownNotice, { offset: 'int8', limit: 'int8' }),
  listLastingNotices: many(ShownNotice, { offset: 'int8', limit: 'int8' }),
  pageNotices: many(ShownNotice, { at: 'timestamptz', id: 'int8', limit: 'int8' }),
  listSendsOf: many(SendOf, { notices: 'jsonb', limit: 'int8' }),
  readTargetStates: many(TargetState, { names: 'jsonb', limit: 'int8' }),
  listSends: many(Send, { notice: 'int8', limit: 'int8' }),
  acknowledgeNotice: optional(Id, {
    id: 'int8',
    now: 'timestamptz',
    by: 'text',
  }),
  pruneNotices: one(Type.Object({ removed: Type.Integer() }), {
    before: 'timestamptz',
    limit: 'int8',
  }),
  forgetTargets: exec({ names: 'jsonb' }),
})
