import Type from 'typebox'
import { nullable, exec, one, sqlFile } from '../sql-file.ts'

/** Configuration that was saved; null where nothing was. */
export const SavedSettings = Type.Object({
  interval: nullable(Type.Integer()),
  tier1_model: nullable(Type.String()),
  tier2_model: nullable(Type.String()),
  tier3_model: nullable(Type.String()),
  dry_run: nullable(Type.Boolean()),
})
export type SavedSettings = Type.Static<typeof SavedSettings>

export const configQueries = sqlFile('sql/ops/config.sql', {
  readSettings: one(SavedSettings, {}),
  writeSettings: exec({
    interval: 'int4?',
    tier1_model: 'text?',
    tier2_model: 'text?',
    tier3_model: 'text?',
    dry_run: 'bool?',
  }),
})
