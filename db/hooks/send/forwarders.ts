import * as Type from '../../../kernel/schema.ts'
import { Timestamp, many, one, optional, sqlFile } from '../../sql-file.ts'

/** Ids of events that a forwarder gets once more. */
const Again = Type.Array(Type.Integer())

/** The position of a forwarder that has just connected; its first connection is 1. */
export const Attached = Type.Object({
  position: Type.Integer(),
  connection: Type.Integer(),
  again: Again,
})
export type Attached = Type.Static<typeof Attached>

/** `waiting` events are above the position, wanted or not, counted up to a limit. */
export const Forwarder = Type.Object({
  name: Type.String(),
  position: Type.Integer(),
  updated_at: Timestamp,
  waiting: Type.Integer(),
})
export type Forwarder = Type.Static<typeof Forwarder>

/** One connection of a forwarder; the one with the highest number has the name. */
export const Connection = Type.Object({
  name: Type.String(),
  connection: Type.Integer(),
  again: Again,
})
export type Connection = Type.Static<typeof Connection>

/** A forwarder to which an event can be sent once more; `waits`: it is still to get it. */
export const Receiver = Type.Object({ name: Type.String(), waits: Type.Boolean() })
export type Receiver = Type.Static<typeof Receiver>

export const forwarderQueries = sqlFile('sql/hooks/send/forwarders.sql', {
  attachForwarder: one(Attached, { name: 'text', start: 'int8?', now: 'timestamptz' }),
  moveForwarder: one(Type.Object({ is_newest: Type.Boolean() }), {
    name: 'text',
    connection: 'int8',
    position: 'int8?',
    target: 'text',
    attempts: 'jsonb',
    repeated: 'int8?',
    now: 'timestamptz',
  }),
  listForwarders: many(Forwarder, { count_up_to: 'int8', limit: 'int8' }),
  removeForwarder: optional(Type.Pick(Forwarder, ['name']), { name: 'text' }),
  listConnections: many(Connection, { names: 'jsonb', limit: 'int8' }),
  sendAgain: optional(Type.Pick(Forwarder, ['name']), { name: 'text', event: 'int8' }),
  listReceivers: many(Receiver, { event: 'int8', limit: 'int8' }),
})
