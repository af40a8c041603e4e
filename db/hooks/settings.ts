import * as Type from '../../kernel/schema.ts'
import { nullable, exec, one, optional, sqlFile } from '../sql-file.ts'

/** hooks.md section 2, Settings; 0 in a retention field means no limit. */
export const Settings = Type.Object({
  retention_max_age_days: Type.Integer({ minimum: 0, maximum: 36_500 }),
  retention_max_rows: Type.Integer({ minimum: 0, maximum: 2_147_483_647 }),
  sse_retry_ms: Type.Integer({ minimum: 250, maximum: 3_600_000 }),
  replay_default_target: nullable(Type.String({ format: 'uri' })),
})
export type Settings = Type.Static<typeof Settings>

const Id = Type.Object({ id: Type.Integer() })
const Removed = Type.Object({ removed: Type.Integer() })

/** The settings, and the removal of what is kept for a time only, except for rejections. */
export const settingsQueries = sqlFile('sql/hooks/settings.sql', {
  readSettings: one(Settings, {}),
  lockSettings: one(Settings, {}),
  writeSettings: exec({ given: 'jsonb' }),
  nameInstallation: one(Type.Object({ name: Type.String() }), { fresh: 'text' }),
  findNewest: optional(Id, { before: 'int8', newer: 'int8' }),
  pruneEvents: one(Removed, { below: 'int8', limit: 'int8' }),
  pruneActivity: exec({ before: 'timestamptz' }),
  pruneForwarders: exec({ connected: 'jsonb', now: 'timestamptz', before: 'timestamptz' }),
})
