import * as Type from '../../../kernel/schema.ts'
import { nullable, Timestamp, exec, one, sqlFile } from '../../sql-file.ts'

const At = nullable(Timestamp)
const By = nullable(Type.String())

/** Since when something is paused, and who paused it; null for what is not. */
const StoredPause = Type.Object({
  investigations_paused_at: At,
  investigations_paused_by: By,
  repairs_paused_at: At,
  repairs_paused_by: By,
})
export type StoredPause = Type.Static<typeof StoredPause>

export const pauseQueries = sqlFile('sql/ops/agent/pause.sql', {
  readPause: one(StoredPause, {}),
  holdPause: one(StoredPause, {}),
  lockPause: one(StoredPause, {}),
  writePause: exec({
    investigations_paused_at: 'timestamptz?',
    investigations_paused_by: 'text?',
    repairs_paused_at: 'timestamptz?',
    repairs_paused_by: 'text?',
  }),
})
