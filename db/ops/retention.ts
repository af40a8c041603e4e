import * as Type from '../../kernel/schema.ts'
import { one, sqlFile } from '../sql-file.ts'

/**
 * Each removes at most `limit` rows that are older than a time. `removed: 0` means that nothing is
 * left to remove.
 */
const prune = one(Type.Object({ removed: Type.Integer() }), {
  before: 'timestamptz',
  limit: 'int8',
})

export const retentionQueries = sqlFile('sql/ops/retention.sql', {
  tryPruningLock: one(Type.Object({ taken: Type.Boolean() }), {}),
  pruneLines: prune,
  pruneSessions: prune,
  pruneEvents: prune,
  pruneActions: prune,
  pruneApprovals: prune,
  pruneAlerts: prune,
  pruneCheckResults: prune,
  pruneCheckHours: prune,
  pruneCheckDays: prune,
  pruneCheckPeriods: prune,
  pruneChecks: prune,
  pruneMutes: prune,
  pruneSilences: prune,
})
