import Type from 'typebox'
import type { Database } from '../../db/client.ts'
import { Settings, settingsQueries } from '../../db/hooks/settings.ts'
import { field, parsed } from '../../kernel/validate.ts'
import { parseTarget, TARGET_FORM } from './outgoing.ts'

const { retention_max_age_days, retention_max_rows, sse_retry_ms } = Settings.properties

/** What `POST /settings` takes: an absent field keeps its value, an empty target is none. */
export const SettingsForm = Type.Object({
  retention_max_age_days: field(
    Type.Optional(retention_max_age_days),
    'must be a whole number of days from 0 (no limit) to 36500.',
  ),
  retention_max_rows: field(
    Type.Optional(retention_max_rows),
    'must be a whole number of events from 0 (no limit) to 2147483647.',
  ),
  sse_retry_ms: field(
    Type.Optional(sse_retry_ms),
    'must be a whole number of milliseconds from 250 to 3600000.',
  ),
  replay_default_target: parsed(
    Type.Optional(Type.Unsafe<string | null>({ type: 'string', format: 'uri' })),
    `must be ${TARGET_FORM}, or nothing.`,
    (given) => {
      const text = String(given).trim()
      if (text === '') return null
      return parseTarget(text) === undefined ? undefined : text
    },
  ),
})
export type SettingsForm = Type.Static<typeof SettingsForm>

/** Writes the settings that are given; the others keep their value, whoever changes them meanwhile. */
export async function writeSettings(db: Database, given: SettingsForm): Promise<void> {
  await settingsQueries.writeSettings(db, {
    retention_max_age_days: given.retention_max_age_days ?? null,
    retention_max_rows: given.retention_max_rows ?? null,
    sse_retry_ms: given.sse_retry_ms ?? null,
    replay_default_target: given.replay_default_target ?? null,
    sets_target: given.replay_default_target !== undefined,
  })
}
