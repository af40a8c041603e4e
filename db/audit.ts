import * as Type from '../kernel/schema.ts'
import { exec, many, one, sqlFile, Timestamp } from './sql-file.ts'

/** A change as its line in the audit tells it. */
export const Change = Type.Object({
  id: Type.Integer(),
  at: Timestamp,
  actor: Type.String(),
  action: Type.String(),
  service: Type.Enum(['hooks', 'links', 'ops']),
  subject: Type.String(),
})
export type Change = Type.Static<typeof Change>

export const auditQueries = sqlFile('sql/audit.sql', {
  addChange: exec({ actor: 'text', action: 'text', service: 'text', subject: 'text' }),
  listChanges: many(Change, {
    before: 'int8',
    service: 'text?',
    since: 'timestamptz',
    limit: 'int8',
  }),
  pruneChanges: one(Type.Object({ removed: Type.Integer() }), {
    before: 'timestamptz',
    kept: 'int8',
    limit: 'int8',
  }),
})
