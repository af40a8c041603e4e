import Type from 'typebox'
import { exec, one, sqlFile } from '../sql-file.ts'

const Removed = Type.Object({ removed: Type.Integer() })

/** Everything of the hooks service that is kept for a time only, except for its rejections. */
export const retentionQueries = sqlFile('sql/hooks/retention.sql', {
  pruneEventsByAge: one(Removed, { before: 'timestamptz', limit: 'int8' }),
  pruneEventsByCount: one(Removed, { keep: 'int8', limit: 'int8' }),
  pruneActivity: exec({ before: 'timestamptz' }),
  pruneForwarders: exec({ connected: 'jsonb', now: 'timestamptz', before: 'timestamptz' }),
})
