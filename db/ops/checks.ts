import Type from 'typebox'
import { nullable, Timestamp, exec, many, sqlFile } from '../sql-file.ts'

/** The last result of a check of the inventory. `since` is when a result first said so. */
export const CheckState = Type.Object({
  service: Type.String(),
  name: Type.String(),
  ok: Type.Boolean(),
  since: Timestamp,
  message: Type.String(),
  ms: Type.Integer(),
  checked_at: Timestamp,
  session_id: nullable(Type.Integer()),
})
export type CheckState = Type.Static<typeof CheckState>

/** `told_event` is the event whose notice reported that the check fails. */
const PreviousState = Type.Object({
  ...Type.Pick(CheckState, ['service', 'name', 'ok']).properties,
  told_event: nullable(Type.Integer()),
})

export const checkQueries = sqlFile('sql/ops/checks.sql', {
  saveCheckStates: many(PreviousState, {
    states: 'jsonb',
    session: 'int8',
    now: 'timestamptz',
  }),
  saveNotifiedEvent: exec({ service: 'text', name: 'text', event: 'int8?' }),
  listCheckStates: many(CheckState, { limit: 'int8' }),
})
