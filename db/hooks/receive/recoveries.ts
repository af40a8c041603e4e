import * as Type from '../../../kernel/schema.ts'
import { exec, many, nullable, optional, sqlFile, Timestamp } from '../../sql-file.ts'

/** Deliveries of a provider that failed at its sender. */
const RecoveryCount = Type.Object({
  provider: Type.String(),
  failed: Type.Integer(),
  /** Of them: delivered since, asked for, and neither. */
  redelivered: Type.Integer(),
  asked: Type.Integer(),
  left: Type.Integer(),
})
export type RecoveryCount = Type.Static<typeof RecoveryCount>

/** What the newest look at a sender has found. */
const Recovery = Type.Object({
  /** `github:owner/repo`, or `stripe`. */
  source: Type.String(),
  ended_at: Timestamp,
  problem: nullable(Type.String()),
  counts: Type.Array(RecoveryCount),
})
export type Recovery = Type.Static<typeof Recovery>

const Problem = Type.Pick(Recovery, ['problem'])
const Id = Type.Object({ id: Type.String() })

export const recoveryQueries = sqlFile('sql/hooks/receive/recoveries.sql', {
  claimRecovery: optional(Problem, { source: 'text', lease_ms: 'int8' }),
  releaseRecovery: exec({ source: 'text' }),
  saveRecovery: exec({ source: 'text', wait_ms: 'int8?', problem: 'text?', counts: 'jsonb?' }),
  listRecoveries: many(Recovery, {}),
  listMissing: many(Id, { provider: 'text', ids: 'jsonb' }),
  pruneRecoveries: exec({ before: 'timestamptz' }),
})
