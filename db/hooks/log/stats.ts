import * as Type from '../../../kernel/schema.ts'
import { Timestamp, many, sqlFile } from '../../sql-file.ts'

/** What a provider sent in one hour. A rejected delivery is no event. */
export const HourStats = Type.Object({
  provider: Type.String(),
  hour: Timestamp,
  events: Type.Integer(),
  rejections: Type.Integer(),
})
export type HourStats = Type.Static<typeof HourStats>

export const statsQueries = sqlFile('sql/hooks/log/stats.sql', {
  listStats: many(HourStats, { since: 'timestamptz' }),
})
