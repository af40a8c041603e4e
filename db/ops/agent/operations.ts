import * as Type from '../../../kernel/schema.ts'
import { nullable, Timestamp, exec, many, one, optional, sqlFile } from '../../sql-file.ts'

const Id = Type.Object({ id: Type.Integer() })

/** ops.md section 2, Cooldown summary. */
export const ActionSummary = Type.Object({
  service: Type.String(),
  action_type: Type.String(),
  count: Type.Integer(),
  last_action: Timestamp,
})
export type ActionSummary = Type.Static<typeof ActionSummary>

/** How often a limit was used; `blocks` is the action that keeps another one from running. */
const Use = Type.Object({
  position: Type.Integer(),
  count: Type.Integer(),
  last_action: nullable(Timestamp),
  blocks: nullable(Timestamp),
})

/** What a session did, counted from its tool calls and operations. */
const SessionRecord = Type.Object({
  calls: Type.Integer(),
  errors: Type.Integer(),
  /** Operations that it asked for, whether they ran or not. */
  asked: Type.Integer(),
  operations: Type.Integer(),
})
export type SessionRecord = Type.Static<typeof SessionRecord>

/** The table `actions` has a row for each operation that was admitted. */
export const operationQueries = sqlFile('sql/ops/agent/operations.sql', {
  listActions: many(ActionSummary, { since: 'timestamptz', limit: 'int8' }),
  listUses: many(Use, { limits: 'jsonb', until: 'timestamptz', limit: 'int8' }),
  findRecord: one(SessionRecord, { session: 'int8' }),
  lockAdmission: exec({}),
  countActions: one(Type.Pick(ActionSummary, ['count']), {
    service: 'text',
    action_type: 'text',
    since: 'timestamptz',
    until: 'timestamptz',
  }),
  addAction: optional(Id, {
    session: 'int8',
    holder: 'text',
    service: 'text',
    action_type: 'text',
    operation: 'text',
    now: 'timestamptz',
  }),
  addApprovedAction: one(Id, {
    session: 'int8?',
    service: 'text',
    action_type: 'text',
    operation: 'text',
    now: 'timestamptz',
  }),
  finishAction: exec({ id: 'int8', outcome: 'text' }),
  listOpenActions: many(Id, { session: 'int8', limit: 'int8' }),
  endActions: exec({ session: 'int8', outcome: 'text' }),
})
