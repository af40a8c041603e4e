import * as Type from '../../../kernel/schema.ts'
import { nullable, Timestamp, exec, many, optional, sqlFile } from '../../sql-file.ts'
import { CheckState, Period, State } from '../watch/checks.ts'

const Id = Type.Integer()

/**
 * A check whose failure waits for a session of this tier. The event told the failure; `cools_until`
 * is null unless a session looked into the check too short a time ago.
 */
const WaitingCheck = Type.Object({
  ...Type.Pick(CheckState, ['id', 'service', 'name', 'type', 'every_s', 'since', 'message'])
    .properties,
  tier: Type.Integer(),
  event_id: Id,
  told_at: Timestamp,
  cools_until: nullable(Timestamp),
})
export type WaitingCheck = Type.Static<typeof WaitingCheck>

/** The tier of the sessions that a check starts, null for none, and when which one began last. */
const Investigation = Type.Object({
  tier: nullable(Type.Integer()),
  at: nullable(Timestamp),
  session_id: nullable(Id),
})
export type Investigation = Type.Static<typeof Investigation>

const LastResult = Type.Object({
  check_id: Id,
  at: Timestamp,
  state: State,
  ms: Type.Integer(),
  message: Type.String(),
})
export type LastResult = Type.Static<typeof LastResult>

const LastPeriod = Type.Object({
  check_id: Id,
  ...Type.Pick(Period, ['state', 'began_at', 'ended_at', 'message']).properties,
})
export type LastPeriod = Type.Static<typeof LastPeriod>

const OtherChange = Type.Object({
  ...Type.Pick(CheckState, ['service', 'name']).properties,
  ...Type.Pick(Period, ['state', 'began_at', 'message']).properties,
})
export type OtherChange = Type.Static<typeof OtherChange>

const LastAction = Type.Object({
  at: Timestamp,
  service: Type.String(),
  operation: Type.String(),
  outcome: nullable(Type.String()),
})
export type LastAction = Type.Static<typeof LastAction>

const ofChecks = { ids: 'jsonb', each: 'int8', limit: 'int8' } as const

export const investigationQueries = sqlFile('sql/ops/alerts/investigations.sql', {
  listWaiting: many(WaitingCheck, {
    id: 'int8?',
    now: 'timestamptz',
    cooldown_s: 'int4',
    limit: 'int8',
  }),
  saveInvestigations: exec({ checks: 'jsonb', now: 'timestamptz', session: 'int8' }),
  resolveAlerts: exec({ now: 'timestamptz' }),
  findInvestigation: optional(Investigation, { id: 'int8' }),
  listLastResults: many(LastResult, ofChecks),
  listLastPeriods: many(LastPeriod, ofChecks),
  listOtherChanges: many(OtherChange, { since: 'timestamptz', ids: 'jsonb', limit: 'int8' }),
  listLastActions: many(LastAction, { since: 'timestamptz', limit: 'int8' }),
})
