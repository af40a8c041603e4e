import * as Type from '../../kernel/schema.ts'
import { nullable, exec, one, sqlFile } from '../sql-file.ts'

const Model = nullable(Type.String())
/** Configuration that was saved; null where nothing was. */
const SavedSettings = Type.Object({
  interval: nullable(Type.Integer()),
  tier1_model: Model,
  tier2_model: Model,
  tier3_model: Model,
  dry_run: nullable(Type.Boolean()),
  /** The services of the status page. */
  status_services: nullable(Type.Array(Type.String())),
})

export const configQueries = sqlFile('sql/ops/config.sql', {
  readSettings: one(SavedSettings, {}),
  lockSettings: one(SavedSettings, {}),
  writeSettings: exec({
    interval: 'int4?',
    tier1_model: 'text?',
    tier2_model: 'text?',
    tier3_model: 'text?',
    dry_run: 'bool?',
  }),
  writeStatusServices: exec({ services: 'jsonb' }),
})
