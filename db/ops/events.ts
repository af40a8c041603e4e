import * as Type from '../../kernel/schema.ts'
import { Level } from '../notices.ts'
import { nullable, Timestamp, exec, many, one, sqlFile, filtered } from '../sql-file.ts'

/** ops.md section 2, Event. */
export const Event = Type.Object({
  id: Type.Integer(),
  session_id: nullable(Type.Integer()),
  level: Level,
  service: nullable(Type.String()),
  message: Type.String(),
  created_at: Timestamp,
})
export type Event = Type.Static<typeof Event>

const newEvent = {
  session: 'int8?',
  level: 'text',
  service: 'text?',
  message: 'text',
  now: 'timestamptz',
} as const

/** Null for all. */
const filter = { level: 'text?', service: 'text?', session: 'int8?' } as const

export const eventQueries = sqlFile('sql/ops/events.sql', {
  addEvent: one(Event, { ...newEvent, notify: 'bool', waits: 'bool' }),
  addEventOnce: exec(newEvent),
  listEvents: filtered(many(Event, { ...filter, offset: 'int8', limit: 'int8' })),
  pageEvents: filtered(
    many(Event, {
      level: 'text?',
      service: 'text?',
      at: 'timestamptz',
      id: 'int8',
      limit: 'int8',
    }),
  ),
  countEvents: filtered(
    one(Type.Object({ count: Type.Integer() }), {
      level: 'text?',
      service: 'text?',
      limit: 'int8',
    }),
  ),
})
