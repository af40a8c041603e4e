import Type from 'typebox'
import { Bytes, exec, many, nullable, one, optional, sqlFile, Timestamp } from '../sql-file.ts'
import { Event, Level } from './events.ts'

/** An event, or a session that failed or ran out of time, that operators are notified of. */
const Notice = Type.Object({
  ...Event.properties,
  kind: Type.Enum(['event', 'session']),
  service: Type.String(),
  /** Whether something begins with it that lasts. */
  lasts: Type.Boolean(),
  /** Of an end: the notice of its beginning. */
  begin_id: nullable(Type.Integer()),
  /** Above 0: the number of this reminder. */
  reminder: Type.Integer(),
})
export type Notice = Type.Static<typeof Notice>

/** A notice as its page shows it. */
const ShownNotice = Type.Object({
  ...Type.Omit(Notice, ['kind', 'reminder']).properties,
  ended_at: nullable(Timestamp),
  acknowledged_at: nullable(Timestamp),
  acknowledged_by: nullable(Type.String()),
})
export type ShownNotice = Type.Static<typeof ShownNotice>

/** What a target got of a notice. */
const Send = Type.Object({
  target: Type.String(),
  number: Type.Integer(),
  attempts: Type.Integer(),
  sent_at: nullable(Timestamp),
  problem: nullable(Type.String()),
})
export type Send = Type.Static<typeof Send>

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

const TargetChange = Type.Object({ target: Type.String(), fails: Type.Boolean() })

export const noticeQueries = sqlFile('sql/ops/notices.sql', {
  lockNotices: exec({}),
  beginNotice: exec({ event: 'int8', now: 'timestamptz', key: 'text', about_target: 'text?' }),
  endNotice: exec({ event: 'int8', now: 'timestamptz', key: 'text' }),
  countNotices: one(Type.Object({ notices: Type.Integer(), same: Type.Boolean() }), {
    session: 'int8',
    service: 'text?',
    message: 'text',
  }),
  planSends: exec({ targets: 'jsonb', now: 'timestamptz' }),
  planReminders: exec({ targets: 'jsonb', now: 'timestamptz' }),
  claimSend: optional(Notice, { target: 'text', now: 'timestamptz', quiet: 'bool' }),
  finishSend: exec({
    notice: 'int8',
    target: 'text',
    number: 'int4',
    problem: 'text?',
    now: 'timestamptz',
  }),
  listTargetChanges: many(TargetChange, {
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
  listSends: many(Send, { notice: 'int8', limit: 'int8' }),
  acknowledgeNotice: optional(Type.Object({ id: Type.Integer() }), {
    id: 'int8',
    now: 'timestamptz',
    by: 'text',
  }),
  pruneNotices: exec({ before: 'timestamptz', names: 'jsonb' }),
})
