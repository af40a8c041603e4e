import type { Attempt, EventSummary, StoredEvent } from '../../db/hooks/rows.ts'
import type { Activity } from '../../db/hooks/providers.ts'
import type { Settings } from '../../db/hooks/settings.ts'
import type { Rejection, RejectionCount } from '../../db/hooks/rejections.ts'
import type { LogQuery } from '../../services/hooks/log-filter.ts'
import type { StatusMessage } from '../../services/hooks/status.ts'

/** What `/` shows. */
export interface DashboardView {
  readonly baseUrl: string
  /** How the operator calls this program. */
  readonly program: string
  /** Where the live stream goes on: no event after it need be on the page. */
  readonly position: number
  readonly status: StatusMessage
  /** The newest events, newest first. */
  readonly events: readonly EventSummary[]
  /** Events per provider and hour of the last 24 hours; hours without events are left out. */
  readonly activity: readonly Activity[]
  readonly rejections: readonly RejectionCount[]
}

/** The filters of `/log` as they stand in its URL; empty text means no filter. */
export type LogFilter = Pick<
  LogQuery,
  'provider' | 'event_type' | 'since' | 'limit' | 'text' | 'json'
>

/** A page of `/log`. */
export interface LogView {
  readonly filter: LogFilter
  readonly providers: readonly string[]
  readonly events: readonly EventSummary[]
  /** True for what is below a cursor. */
  readonly below: boolean
  /** Path and query of the next page, or null on the last one. */
  readonly next: string | null
  /** A search that looked long enough stopped here; `next` goes on from it. */
  readonly searchedTo: Date | null
}

/** A page of `/log?rejected=1`. */
export interface RejectionsView {
  readonly filter: LogFilter
  readonly providers: readonly string[]
  readonly rejections: readonly Rejection[]
  readonly below: boolean
  readonly next: string | null
}

/** What `/log/{id}` shows. */
export interface EventView {
  /** EventDetail of hooks.md section 2; `payload` is text, or base64 when the bytes are no UTF-8. */
  readonly event: Omit<StoredEvent, 'payload'> & {
    readonly payload: string
    readonly payload_encoding: 'utf8' | 'base64'
  }
  /** How much of a long payload's end was not read. */
  readonly omittedBytes: number
  /** The payload indented, when it is JSON or a form; else null. */
  readonly pretty: string | null
  /** An earlier event with the same body, which may mean a replayed delivery. */
  readonly sameBody: number | null
  /** What the unsigned type header says, where the event keeps another type; else null. */
  readonly contradictedType: string | null
  /** A command that sends the bytes again to this receiver, without a secret; null for a queue's event. */
  readonly curl: string | null
  readonly replay: ReplayView
}

/** The part of an event's page that sends it on. */
export interface ReplayView {
  readonly eventId: number
  /** Where it is sent when no target is given; null when the settings name none. */
  readonly defaultTarget: string | null
  /** The newest attempts, newest first. */
  readonly attempts: readonly Attempt[]
  /** True right after an attempt: what the newest one came to is said. */
  readonly done: boolean
  /** Why the last form was refused, with what was typed. */
  readonly refused: { readonly typed: string; readonly message: string } | null
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
