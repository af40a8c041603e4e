import Type from 'typebox'
import { nullable, exec, many, sqlFile } from '../sql-file.ts'

/** The result of a check of the inventory. */
export const CheckState = Type.Object({
  service: Type.String(),
  name: Type.String(),
  ok: Type.Boolean(),
})
export type CheckState = Type.Static<typeof CheckState>

/** `told_event` is the event whose notice reported that the check fails. */
const PreviousState = Type.Object({
  ...CheckState.properties,
  told_event: nullable(Type.Integer()),
})

export const checkQueries = sqlFile('sql/ops/checks.sql', {
  saveCheckStates: many(PreviousState, { states: 'jsonb', now: 'timestamptz' }),
  saveNotifiedEvent: exec({ service: 'text', name: 'text', event: 'int8?' }),
})
