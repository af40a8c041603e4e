import Type from 'typebox'
import { exec, many, nullable, one, optional, sqlFile, Timestamp } from '../sql-file.ts'
import { Event } from './events.ts'

/** An event, or a session that failed or ran out of time, that operators are notified of. */
const Notice = Type.Object({
  ...Event.properties,
  kind: Type.Enum(['event', 'session']),
  service: Type.String(),
  /** Whether something begins with it that lasts. */
  lasts: Type.Boolean(),
  /** Of an end: the notice of its beginning. */
  begin_id: nullable(Type.Integer()),
})
export type Notice = Type.Static<typeof Notice>

/** A target that has not taken everything. */
const Unsent = Type.Object({
  target: Type.String(),
  count: Type.Integer(),
  newest: Timestamp,
  problem: nullable(Type.String()),
})
export type Unsent = Type.Static<typeof Unsent>

const TargetChange = Type.Object({ target: Type.String(), fails: Type.Boolean() })

export const noticeQueries = sqlFile('sql/ops/notices.sql', {
  lockNotices: exec({}),
  findLasting: one(Type.Object({ lasts: Type.Boolean() }), { key: 'text' }),
  beginNotice: exec({ event: 'int8', now: 'timestamptz', key: 'text', about_target: 'text?' }),
  endNotice: exec({ event: 'int8', now: 'timestamptz', key: 'text' }),
  countNotices: one(Type.Object({ notices: Type.Integer(), same: Type.Boolean() }), {
    session: 'int8',
    service: 'text?',
    message: 'text',
  }),
  planSends: exec({ targets: 'jsonb', now: 'timestamptz' }),
  claimSend: optional(Notice, { target: 'text', now: 'timestamptz' }),
  finishSend: exec({ notice: 'int8', target: 'text', problem: 'text?', now: 'timestamptz' }),
  listTargetChanges: many(TargetChange, {
    since: 'timestamptz',
    names: 'jsonb',
    limit: 'int8',
  }),
  listUnsent: many(Unsent, { limit: 'int8' }),
  pruneNotices: exec({ before: 'timestamptz', names: 'jsonb' }),
})
