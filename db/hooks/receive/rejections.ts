import * as Type from '../../../kernel/schema.ts'
import { nullable, Timestamp, exec, many, sqlFile } from '../../sql-file.ts'

/** Stands for the provider of a delivery whose path leads to none; no provider has this name. */
export const UNKNOWN_PROVIDER = 'unknown'

/** A rejected delivery as it is kept: without payload, the source reduced to its network. */
export const Rejection = Type.Object({
  id: Type.Integer(),
  at: Timestamp,
  provider: Type.String(),
  status: Type.Integer(),
  source: Type.String(),
  reason: Type.String(),
})
export type Rejection = Type.Static<typeof Rejection>

/** Rejected deliveries that are alike. */
export const RejectionGroup = Type.Object({
  provider: Type.String(),
  status: Type.Integer(),
  reason: Type.String(),
  count: Type.Integer(),
  /** Networks that they came from. */
  sources: Type.Integer(),
  first_at: Timestamp,
  last_at: Timestamp,
})
export type RejectionGroup = Type.Static<typeof RejectionGroup>

export const RejectionCount = Type.Object({
  provider: Type.String(),
  total: Type.Integer(),
  last_reason: nullable(Type.String()),
})
export type RejectionCount = Type.Static<typeof RejectionCount>

export const rejectionQueries = sqlFile('sql/hooks/receive/rejections.sql', {
  saveRejections: exec({
    rows: 'jsonb',
    sums: 'jsonb',
    writer: 'uuid',
    batch: 'int8',
    now: 'timestamptz',
    keep: 'int8',
    unknown: 'text',
    keep_unknown: 'int8',
  }),
  forgetRejectionWriters: exec({ before: 'timestamptz' }),
  listRejections: many(Rejection, { below: 'int8', provider: 'text?', limit: 'int8' }),
  groupRejections: many(RejectionGroup, {
    provider: 'text?',
    among: 'int8',
    since: 'timestamptz',
    unknown: 'text',
    kinds: 'int8',
  }),
  listRejectionCounts: many(RejectionCount, {}),
  pruneRejectionMinutes: exec({ before: 'timestamptz' }),
})
