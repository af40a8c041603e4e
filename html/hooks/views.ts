import type { SecretName } from '../../db/hooks/providers.ts'
import type { Settings } from '../../db/hooks/settings.ts'
import type { RejectionCount } from '../../db/hooks/rejections.ts'
import type { AlarmKind } from '../../services/hooks/alarms.ts'
import type { ProviderStatus } from '../../services/hooks/providers.ts'

/** One provider as its card on `/providers` shows it. */
export interface ProviderCard {
  readonly status: ProviderStatus
  readonly recent_count: number
  readonly last_event_at: Date | null
  readonly rejections: RejectionCount | null
  /** Full URL a sender posts to. */
  readonly url: string | null
  /** Environment variable that holds a signed provider's secret. */
  readonly variable: string | null
  /** Which secret the newest verified delivery came with; null when none has come with the present ones. */
  readonly lastSecret: { readonly secret: SecretName; readonly at: Date } | null
  /** Until when the secret before the last rotation is accepted as well; null when it is not. */
  readonly previousUntil: Date | null
  /** How long a rotated secret may be accepted beside the new one, shortest first. */
  readonly overlaps: readonly {
    readonly seconds: number
    readonly text: string
    readonly chosen: boolean
  }[]
  readonly alarm: AlarmView
}

/** A provider's alarms: what is set (null: off), and what fires. */
export interface AlarmView {
  /** Such as `15m`. */
  readonly interval: string | null
  readonly burst: number | null
  readonly firing: readonly AlarmKind[]
  /** True right after saving. */
  readonly saved: boolean
}

/** What `/providers` shows. */
export interface ProvidersView {
  readonly cards: readonly ProviderCard[]
  readonly baseUrl: string
  /** What was just made or rotated; a token or secret is shown this one time. */
  readonly made: {
    readonly name: string
    readonly trust_mode: 'token' | 'signed' | 'open'
    readonly token: string | null
    readonly url: string
    /** False for one that was created. */
    readonly rotated: boolean
  } | null
  /** True when signing secrets can be stored. */
  readonly canSign: boolean
  /** Why the last form was refused, with what was typed. */
  readonly refused: {
    readonly name: string
    readonly trust_mode: string
    readonly message: string
  } | null
}

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
