import Type from 'typebox'
import { nullable, Timestamp } from '../rows.ts'

const Text = Type.String()
const Count = Type.Integer()

export const Status = Type.Enum([
  'running',
  'completed',
  'failed',
  'timed_out',
  'escalated',
  'stopped',
])
export type Status = Type.Static<typeof Status>

export const Trigger = Type.Enum(['scheduled', 'manual', 'api', 'escalation', 'alert'])
export type Trigger = Type.Static<typeof Trigger>

/** ops.md section 2, Session. */
export const Session = Type.Object({
  id: Count,
  tier: Count,
  model: Text,
  status: Status,
  started_at: Timestamp,
  ended_at: nullable(Timestamp),
  exit_code: nullable(Count),
  cost_usd: nullable(Type.Number()),
  num_turns: nullable(Count),
  duration_ms: nullable(Count),
  trigger: Trigger,
  prompt_text: nullable(Text),
  parent_session_id: nullable(Count),
})
export type Session = Type.Static<typeof Session>

export const FoundSession = Type.Object({
  ...Session.properties,
  summary: nullable(Text),
  marker: Text,
  chain_cost: Type.Number(),
})
/** A session with what its page shows beside; `chain_cost` counts null as 0. */
export type FoundSession = Type.Static<typeof FoundSession>

/** A session that is to begin. */
export interface NewSession extends Pick<
  Session,
  'tier' | 'model' | 'trigger' | 'prompt_text' | 'started_at' | 'parent_session_id'
> {
  readonly holder: string
  readonly machine: string
}

export const Started = Type.Object({ ...Session.properties, marker: Text })
/** A session that has begun; its processes bear the marker in their environment. */
export type Started = Type.Static<typeof Started>

export const Lease = Type.Object({
  id: Count,
  marker: Text,
  holder: Text,
  machine: Text,
  heartbeat_at: Timestamp,
})
/** Which process runs the running session. */
export type Lease = Type.Static<typeof Lease>

/** How a session ended. */
export interface Ending extends Pick<Session, 'exit_code' | 'cost_usd' | 'num_turns'> {
  readonly status: Exclude<Status, 'running'>
  readonly summary: string | null
}

export const Line = Type.Object({ seq: Count, at: Timestamp, kind: Text, text: Text })
/** One line of a session's output, without secrets. */
export type Line = Type.Static<typeof Line>
