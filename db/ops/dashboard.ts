import Type from 'typebox'
import { Timestamp, many, optional, sqlFile } from '../sql-file.ts'

/** What the session of this id found. */
export const Summary = Type.Object({
  id: Type.Integer(),
  ended_at: Timestamp,
  summary: Type.String(),
})
export type Summary = Type.Static<typeof Summary>

/** What happened on a day in UTC, such as `2026-01-31`. */
export const Day = Type.Object({
  day: Type.String(),
  sessions: Type.Integer(),
  cost_usd: Type.Number(),
  events: Type.Integer(),
})
export type Day = Type.Static<typeof Day>

export const dashboardQueries = sqlFile('sql/ops/dashboard.sql', {
  findSummary: optional(Summary, {}),
  listDays: many(Day, { since: 'timestamptz', limit: 'int8' }),
})
