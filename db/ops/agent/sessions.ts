import * as Type from '../../../kernel/schema.ts'
import {
  nullable,
  Timestamp,
  exec,
  many,
  one,
  optional,
  sqlFile,
  filtered,
} from '../../sql-file.ts'

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

/** A session that has begun. Its processes carry the marker in their environment. */
export const Started = Type.Object({ ...Session.properties, marker: Text })
export type Started = Type.Static<typeof Started>

/** A session with what only its page shows. `chain_cost` counts null as 0. */
export const FoundSession = Type.Object({
  ...Started.properties,
  tool_calls: nullable(Count),
  summary: nullable(Text),
  chain_cost: Type.Number(),
})
export type FoundSession = Type.Static<typeof FoundSession>

/** A session of a chain, which the id of its first session names. */
const ChainSession = Type.Object({ ...Session.properties, chain: Count })
export type ChainSession = Type.Static<typeof ChainSession>

/** How many sessions there were, what they cost, and how many failed or ran out of time. */
const Sums = Type.Object({
  sessions: Count,
  cost_usd: nullable(Type.Number()),
  failed: Count,
})
export type Sums = Type.Static<typeof Sums>

/** Which process runs the running session. */
export const Lease = Type.Object({
  id: Count,
  marker: Text,
  holder: Text,
  machine: Text,
  heartbeat_at: Timestamp,
  /** Milliseconds since the lease was renewed, by the database's clock. */
  silent_ms: Type.Number(),
})
export type Lease = Type.Static<typeof Lease>

/** How a session ended. */
export interface Ending extends Pick<Session, 'exit_code' | 'cost_usd' | 'num_turns'> {
  status: Exclude<Status, 'running'>
  /** Null where they are not counted. */
  tool_calls: number | null
  summary: string | null
}

/** One line of a session's output, without secrets. */
export const Line = Type.Object({ seq: Count, at: Timestamp, kind: Text, text: Text })
export type Line = Type.Static<typeof Line>

/** A line as it is stored. `call` numbers the tool call that it is of; null for other lines. */
export const StoredLine = Type.Object({ ...Line.properties, call: nullable(Count) })
export type StoredLine = Type.Static<typeof StoredLine>

/** A line of a tool call; `cut` if its text is only the beginning. */
const CallLine = Type.Object({ ...Line.properties, call: Count, cut: Type.Boolean() })
export type CallLine = Type.Static<typeof CallLine>

/** What the session of this id found. */
const Summary = Type.Object({ id: Count, ended_at: Timestamp, summary: Text })
export type Summary = Type.Static<typeof Summary>

/** What happened on a day in UTC, such as `2026-01-31`. */
const Day = Type.Object({ day: Text, sessions: Count, cost_usd: Type.Number(), events: Count })
export type Day = Type.Static<typeof Day>

/** A session that looked into an alert. `operations` has a line for each that it ran. */
export const AlertSession = Type.Object({
  ...Type.Omit(Session, ['exit_code', 'num_turns', 'prompt_text']).properties,
  summary: nullable(Text),
  operations: Type.Array(Text),
})
export type AlertSession = Type.Static<typeof AlertSession>

/** The alert that a session looks into, as its sender wrote it. */
const SessionAlert = Type.Object({ title: Text, source: nullable(Text), payload: Text })

/** The alert of a session, and the first session of its chain. */
const Recalled = Type.Object({ id: Count, firings: Count, first_seen: Timestamp, chain: Count })

const Id = Type.Pick(Session, ['id'])
/** Null for all. */
const filters = { status: 'text?', trigger: 'text?' } as const
const range = { since: 'timestamptz', until: 'timestamptz' } as const
const Cost = Type.Object({ cost_usd: Type.Number() })

export const sessionQueries = sqlFile('sql/ops/agent/sessions.sql', {
  lockStarts: exec({}),
  startSession: optional(Started, {
    tier: 'int2',
    model: 'text',
    trigger: 'text',
    prompt_text: 'text?',
    now: 'timestamptz',
    parent_session_id: 'int8?',
    alert: 'int8?',
    holder: 'text',
    machine: 'text',
  }),
  renewLease: optional(Type.Object({ stop_asked: Type.Boolean() }), {
    id: 'int8',
    holder: 'text',
    cost_usd: 'float8?',
  }),
  finishSession: optional(Id, {
    id: 'int8',
    holder: 'text',
    status: 'text',
    now: 'timestamptz',
    exit_code: 'int4?',
    cost_usd: 'float8?',
    num_turns: 'int4?',
    tool_calls: 'int4?',
    summary: 'text?',
  }),
  askToStop: optional(Id, { id: 'int8' }),
  findLease: optional(Lease, {}),
  failLapsed: optional(Id, { id: 'int8', heartbeat_at: 'timestamptz', now: 'timestamptz' }),
  readSessionState: one(Type.Object({ newest: Count, running: Type.Boolean() }), {}),
  findRunning: optional(Session, {}),
  findSession: optional(FoundSession, { id: 'int8' }),
  findStatus: optional(Type.Pick(Session, ['status']), { id: 'int8' }),
  listSessions: filtered(many(Session, { ...filters, offset: 'int8', limit: 'int8' })),
  pageChains: filtered(
    many(Type.Pick(ChainSession, ['id', 'started_at', 'chain']), {
      ...filters,
      ...range,
      at: 'timestamptz',
      id: 'int8',
      limit: 'int8',
    }),
  ),
  listMembers: many(ChainSession, { chains: 'jsonb', limit: 'int8' }),
  sumSessions: filtered(one(Sums, { ...filters, ...range, limit: 'int8' })),
  listChildren: many(Session, { id: 'int8', limit: 'int8' }),
  listChain: many(Session, { id: 'int8', limit: 'int8' }),
  costSince: one(Cost, { since: 'timestamptz' }),
  chainCost: one(Cost, { id: 'int8' }),
  claimSchedule: optional(Type.Object({ scheduled_at: Timestamp }), {
    at: 'timestamptz',
    since: 'timestamptz',
    ahead: 'timestamptz',
    again: 'bool',
  }),
  saveLines: exec({ session: 'int8', lines: 'jsonb' }),
  listLines: many(Line, { session: 'int8', after: 'int4', limit: 'int8' }),
  listLinesBefore: many(Line, { session: 'int8', before: 'int4', limit: 'int8' }),
  listOtherLines: many(StoredLine, { session: 'int8', limit: 'int8' }),
  listCallLines: many(CallLine, {
    session: 'int8',
    calls: 'int4',
    each: 'int8',
    characters: 'int4',
    limit: 'int8',
  }),
  listLinesOfCall: many(StoredLine, { session: 'int8', call: 'int4', limit: 'int8' }),
  findSummary: optional(Summary, {}),
  listDays: many(Day, { since: 'timestamptz', until: 'timestamptz', limit: 'int8' }),
  noteSession: exec({ id: 'int8' }),
  reopenAlert: exec({ session: 'int8', problem: 'text' }),
  findSessionAlert: optional(SessionAlert, {
    session: 'int8',
  }),
  findAlertOf: optional(Type.Object({ id: Count, title: Text }), { session: 'int8' }),
  listAlertSessions: many(AlertSession, {
    alert: 'int8',
    before: 'int8?',
    characters: 'int4',
    limit: 'int8',
  }),
  findRecallOf: optional(Recalled, { session: 'int8' }),
  forgetSession: one(Type.Object({ checks: Count }), { session: 'int8' }),
})
