import Type from 'typebox'
import { nullable, Timestamp, exec, one, optional, sqlFile } from '../sql-file.ts'
import { Level } from './events.ts'

/** A critical event, or a session that failed, that operators are notified of. */
export const Notice = Type.Object({
  id: Type.Integer(),
  kind: Type.Enum(['event', 'session']),
  session_id: nullable(Type.Integer()),
  level: Level,
  service: Type.String(),
  created_at: Timestamp,
  message: Type.String(),
})
export type Notice = Type.Static<typeof Notice>

export const noticeQueries = sqlFile('sql/ops/notices.sql', {
  claimNotice: optional(Notice, { now: 'timestamptz' }),
  countNotices: one(Type.Object({ notices: Type.Integer(), same: Type.Boolean() }), {
    session: 'int8',
    service: 'text?',
    message: 'text',
  }),
  withdrawNotice: exec({ event: 'int8' }),
  finishNotice: exec({ id: 'int8', now: 'timestamptz' }),
  pruneNotices: exec({ before: 'timestamptz' }),
})
