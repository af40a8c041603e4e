import Type from 'typebox'
import { nullable, Timestamp, exec, many, sqlFile } from '../sql-file.ts'

/**
 * What a check knows. `warn` and `fail`: not as it should be, by the level of the check. `unknown`:
 * it had no means to look, or nobody has looked lately.
 */
export const State = Type.Enum(['ok', 'warn', 'fail', 'unknown'])
export type State = Type.Static<typeof State>

/** The last result of a check of the inventory. `since` is when its state began. */
export const CheckState = Type.Object({
  service: Type.String(),
  name: Type.String(),
  state: State,
  since: Timestamp,
  message: Type.String(),
  ms: Type.Integer(),
  checked_at: Timestamp,
  session_id: nullable(Type.Integer()),
})
export type CheckState = Type.Static<typeof CheckState>

/** `told_event` is the event whose notice reported that the check fails. */
export const PreviousState = Type.Object({
  ...Type.Pick(CheckState, ['service', 'name', 'state']).properties,
  told_event: nullable(Type.Integer()),
})

export type PreviousState = Type.Static<typeof PreviousState>

export const checkQueries = sqlFile('sql/ops/checks.sql', {
  saveCheckStates: many(PreviousState, {
    states: 'jsonb',
    session: 'int8',
    now: 'timestamptz',
  }),
  saveNotifiedEvent: exec({ service: 'text', name: 'text', event: 'int8?' }),
  listCheckStates: many(CheckState, { limit: 'int8' }),
})
