import * as Type from '../../../kernel/schema.ts'
import { exec, many, nullable, one, sqlFile, Timestamp } from '../../sql-file.ts'
import { Alert } from './alerts.ts'
import { Event } from '../events.ts'
import { Session } from '../agent/sessions.ts'

/** An alert that no session has looked into. */
const WaitingAlert = Type.Pick(Alert, ['id', 'title', 'source', 'outcome', 'problem', 'last_seen'])
export type WaitingAlert = Type.Static<typeof WaitingAlert>

/** A session whose end a person should know of. */
const WaitingSession = Type.Object({
  ...Type.Pick(Session, ['id', 'tier', 'status']).properties,
  ended_at: Timestamp,
  problem: nullable(Type.String()),
})
export type WaitingSession = Type.Static<typeof WaitingSession>

/** What happened after a time. */
const listed = { since: 'timestamptz', limit: 'int8' } as const

export const waitingQueries = sqlFile('sql/ops/alerts/waiting.sql', {
  readSeen: one(Type.Object({ seen_until: nullable(Timestamp) }), {}),
  markSeen: exec({ until: 'timestamptz' }),
  listWaitingEvents: many(Event, listed),
  listWaitingAlerts: many(WaitingAlert, listed),
  listWaitingSessions: many(WaitingSession, listed),
})
