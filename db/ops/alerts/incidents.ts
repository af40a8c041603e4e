import * as Type from '../../../kernel/schema.ts'
import { many, nullable, optional, sqlFile, Timestamp } from '../../sql-file.ts'
import { ApprovalStatus } from '../agent/approvals.ts'
import { CheckState, Period } from '../watch/checks.ts'
import { Event } from '../events.ts'
import { StoredMemory } from '../agent/memories.ts'

const Text = Type.String()

/** A check that an incident is about, as it is now. */
const IncidentCheck = Type.Pick(CheckState, [
  'id',
  'service',
  'name',
  'state',
  'since',
  'message',
  'checked_at',
])
export type IncidentCheck = Type.Static<typeof IncidentCheck>

/** A change of the state of a check. */
const IncidentChange = Type.Object({
  check_id: Type.Integer(),
  service: Text,
  name: Text,
  ...Type.Pick(Period, ['state', 'began_at', 'ended_at', 'message']).properties,
})
export type IncidentChange = Type.Static<typeof IncidentChange>

/** An operation that a session ran, or asked people for. Of others than these `status` is null. */
const IncidentOperation = Type.Object({
  at: Timestamp,
  service: Text,
  operation: Text,
  session_id: nullable(Type.Integer()),
  status: nullable(ApprovalStatus),
  reason: nullable(Text),
  decided_by: nullable(Text),
  outcome: nullable(Text),
})
export type IncidentOperation = Type.Static<typeof IncidentOperation>

/** What a person noted of an alert. */
export const Note = Type.Object({ id: Type.Integer(), at: Timestamp, author: Text, text: Text })
export type Note = Type.Static<typeof Note>

/** Ids of sessions. */
const ofSessions = { sessions: 'jsonb', limit: 'int8' } as const

export const incidentQueries = sqlFile('sql/ops/alerts/incidents.sql', {
  listIncidentChecks: many(IncidentCheck, { alert: 'int8', service: 'text?', limit: 'int8' }),
  listIncidentChanges: many(IncidentChange, {
    checks: 'jsonb',
    since: 'timestamptz',
    until: 'timestamptz',
    each: 'int8',
    limit: 'int8',
  }),
  listIncidentEvents: many(Event, ofSessions),
  listIncidentOperations: many(IncidentOperation, ofSessions),
  listIncidentMemories: many(StoredMemory, ofSessions),
  addNote: optional(Note, {
    alert: 'int8',
    now: 'timestamptz',
    author: 'text',
    text: 'text',
    most: 'int8',
  }),
  listNotes: many(Note, { alert: 'int8', limit: 'int8' }),
})
