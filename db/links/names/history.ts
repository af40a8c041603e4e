import * as Type from '../../../kernel/schema.ts'
import { Timestamp, exec, many, optional, sqlFile } from '../../sql-file.ts'

/** A change of a link. */
export const Change = Type.Object({
  id: Type.Integer(),
  at: Timestamp,
  actor: Type.String({ description: 'E-mail address of who made it' }),
  action: Type.String({ examples: ['edited'] }),
  detail: Type.Record(Type.Array(Type.Unknown()), {
    description: 'Each changed field with its values before and after',
  }),
})
export type Change = Type.Static<typeof Change>

/** A field with its value as JSON. */
const FieldValue = Type.Object({
  name: Type.String(),
  value: Type.Unsafe<unknown>({ type: 'object' }),
})

export const historyQueries = sqlFile('sql/links/names/history.sql', {
  saveChange: exec({
    link: 'uuid',
    at: 'timestamptz',
    actor: 'text',
    action: 'text',
    detail: 'jsonb',
  }),
  listChanges: many(Change, { link: 'uuid', before: 'int8', limit: 'int8' }),
  findChange: optional(Change, { link: 'uuid', change: 'int8' }),
  listLaterValues: many(FieldValue, {
    link: 'uuid',
    change: 'int8',
    actions: 'jsonb',
    limit: 'int8',
  }),
})
