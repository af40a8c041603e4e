import Type from 'typebox'
import { Compile } from 'typebox/compile'
import { lazy } from '../../kernel/lazy.ts'
import { Settings } from '../../db/hooks/settings.ts'
import { parseTarget, TARGET_FORM } from './outgoing.ts'

/** Why a setting was refused, by field; the message is for people. */
export interface SettingRefusal {
  readonly field: string
  readonly message: string
}

const schema = lazy(() => Compile(Type.Partial(Settings)))

const ACCEPTED: Readonly<Record<keyof Settings, string>> = {
  retention_max_age_days: 'a whole number of days from 0 (no limit) to 36500',
  retention_max_rows: 'a whole number of events from 0 (no limit) to 2147483647',
  sse_retry_ms: 'a whole number of milliseconds from 250 to 3600000',
  replay_default_target: `${TARGET_FORM}, or nothing`,
}

/**
 * The settings that a form asks for (hooks.md section 4); absent fields are to keep their value, an empty
 * `replay_default_target` is none. Nothing is taken when one field is bad.
 */
export function readSettingsForm(form: URLSearchParams): Partial<Settings> | SettingRefusal {
  const wanted: Record<string, unknown> = {}
  for (const field of Object.keys(ACCEPTED)) {
    const text = form.get(field)
    if (text === null) continue
    if (field === 'replay_default_target') wanted[field] = text.trim() === '' ? null : text.trim()
    else wanted[field] = /^\d{1,10}$/.test(text.trim()) ? Number(text) : text
  }
  for (const [field, accepted] of Object.entries(ACCEPTED)) {
    if (!(field in wanted)) continue
    const value = wanted[field]
    const bad =
      field === 'replay_default_target' ? !isTarget(value) : !schema().Check({ [field]: value })
    if (bad) return { field, message: `${field} must be ${accepted}.` }
  }
  return wanted as Partial<Settings>
}

function isTarget(value: unknown): boolean {
  return value === null || (typeof value === 'string' && parseTarget(value) !== undefined)
}
