import type { Settings } from '../../db/hooks/settings.ts'

/** What `/settings` shows. */
export interface SettingsView {
  readonly settings: Settings
  /** True right after saving. */
  readonly saved: boolean
  /** Why the last form was refused: field name and message. */
  readonly refused: { readonly field: string; readonly message: string } | null
  /** General configuration, read-only: variable and value (never a secret). */
  readonly configuration: readonly (readonly [string, string])[]
}
