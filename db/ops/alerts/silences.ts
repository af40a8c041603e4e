import * as Type from '../../../kernel/schema.ts'
import { Timestamp, many, optional, sqlFile } from '../../sql-file.ts'

/** What alerts must have to be silenced, by label; `*` in a value stands for anything. */
const Match = Type.Record(Type.String())
export type Match = Type.Static<typeof Match>

/** A time in which alerts that match start no session. */
export const Silence = Type.Object({
  id: Type.Integer(),
  match: Match,
  starts_at: Timestamp,
  ends_at: Timestamp,
  reason: Type.String(),
  author: Type.String(),
})
export type Silence = Type.Static<typeof Silence>

export const silenceQueries = sqlFile('sql/ops/alerts/silences.sql', {
  listSilences: many(Silence, { now: 'timestamptz', limit: 'int8' }),
  addSilence: optional(Silence, {
    match: 'jsonb',
    starts_at: 'timestamptz',
    ends_at: 'timestamptz',
    reason: 'text',
    author: 'text',
    now: 'timestamptz',
    most: 'int8',
  }),
  endSilence: optional(Type.Pick(Silence, ['match']), { id: 'int8', now: 'timestamptz' }),
})
