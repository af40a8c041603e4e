import Type from 'typebox'
import { nullable, Timestamp } from '../rows.ts'

const Text = Type.String()
const Count = Type.Integer()

export const Level = Type.Enum(['info', 'warning', 'critical'])
export type Level = Type.Static<typeof Level>

/** ops.md section 2, Event. */
export const Event = Type.Object({
  id: Count,
  session_id: nullable(Count),
  level: Level,
  service: nullable(Text),
  message: Text,
  created_at: Timestamp,
})
export type Event = Type.Static<typeof Event>

/** ops.md section 2, Memory. */
export const Memory = Type.Object({
  id: Count,
  service: nullable(Text),
  category: Text,
  observation: Text,
  confidence: Type.Number(),
  active: Type.Boolean(),
  created_at: Timestamp,
  updated_at: Timestamp,
  session_id: nullable(Count),
  tier: Count,
})
export type Memory = Type.Static<typeof Memory>

/** ops.md section 2, Cooldown summary. */
export const Cooldown = Type.Object({
  service: Text,
  action_type: Text,
  count: Count,
  last_action: Timestamp,
})
export type Cooldown = Type.Static<typeof Cooldown>

export const SavedSettings = Type.Object({
  interval: nullable(Count),
  tier1_model: nullable(Text),
  tier2_model: nullable(Text),
  tier3_model: nullable(Text),
  dry_run: nullable(Type.Boolean()),
})
/** What was saved of the configuration; null where nothing was. */
export type SavedSettings = Type.Static<typeof SavedSettings>

export const CheckState = Type.Object({ service: Text, name: Text, ok: Type.Boolean() })
/** How a check of the inventory went. */
export type CheckState = Type.Static<typeof CheckState>

export const CheckBefore = Type.Object({ ...CheckState.properties, told_event: nullable(Count) })
/** How a check went last; `told_event` is the event whose notice told that it fails. */
export type CheckBefore = Type.Static<typeof CheckBefore>

export const AlertOutcome = Type.Enum(['received', 'acknowledged', 'failed', 'triggered'])
export type AlertOutcome = Type.Static<typeof AlertOutcome>

export const Alert = Type.Object({
  id: Count,
  fingerprint: Text,
  source: nullable(Text),
  title: Text,
  payload: Text,
  count: Count,
  first_seen: Timestamp,
  last_seen: Timestamp,
  outcome: AlertOutcome,
  problem: nullable(Text),
  session_id: nullable(Count),
  texts: Count,
})
/**
 * Deliveries to the alert webhook that are of one alert; title and payload are of the newest one, and
 * `texts` counts how many different ones are kept.
 */
export type Alert = Type.Static<typeof Alert>

export const AlertText = Type.Pick(Alert, ['title', 'payload', 'count', 'first_seen', 'last_seen'])
/** One of the texts that deliveries of an alert had. */
export type AlertText = Type.Static<typeof AlertText>

export const UnreadAlert = Type.Object({
  id: Count,
  holder: Text,
  machine: Text,
  reading_since: Timestamp,
})
/** An alert whose newest delivery is being read, and by which process. */
export type UnreadAlert = Type.Static<typeof UnreadAlert>

export const AdoptedAlert = Type.Object({ id: Count, count: Count, tier: Count, payload: Text })
/** A delivery that a process reads in place of another one; `count` is its number. */
export type AdoptedAlert = Type.Static<typeof AdoptedAlert>

export const Summary = Type.Object({ id: Count, ended_at: Timestamp, summary: Text })
/** What the session of this id found. */
export type Summary = Type.Static<typeof Summary>

export const Day = Type.Object({
  day: Text,
  sessions: Count,
  cost_usd: Type.Number(),
  events: Count,
})
/** What happened on a day (UTC), such as `2026-01-31`. */
export type Day = Type.Static<typeof Day>

export const Notice = Type.Object({
  id: Count,
  kind: Type.Enum(['event', 'session']),
  session_id: nullable(Count),
  level: Level,
  service: Text,
  created_at: Timestamp,
  message: Text,
})
/** What somebody is to be told: a critical event, or a session that failed. */
export type Notice = Type.Static<typeof Notice>
