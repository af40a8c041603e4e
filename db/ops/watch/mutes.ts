import * as Type from '../../../kernel/schema.ts'
import { exec, nullable, Timestamp, many, one, optional, sqlFile } from '../../sql-file.ts'

/** What is muted: a check, all checks of a service, or, with neither, everything. */
const Scope = {
  service: nullable(Type.String()),
  check_name: nullable(Type.String()),
}
const MuteScope = Type.Object(Scope)
export type MuteScope = Type.Static<typeof MuteScope>

/** A time in which failures are not told. */
export const Mute = Type.Object({
  id: Type.Integer(),
  ...Scope,
  starts_at: Timestamp,
  ends_at: Timestamp,
  reason: Type.String(),
  author: Type.String(),
  every: nullable(
    Type.String({
      description: 'Of one that comes back: days and hours, such as sat 02:00-04:00',
    }),
  ),
  tz: nullable(Type.String({ description: 'The time zone of these hours' })),
})
export type Mute = Type.Static<typeof Mute>

/** One that comes back. */
const PastTime = Type.Object({ id: Type.Integer(), every: Type.String(), tz: Type.String() })

const Count = Type.Object({ checks: Type.Integer() })

export const muteQueries = sqlFile('sql/ops/watch/mutes.sql', {
  listMutes: many(Mute, { now: 'timestamptz', limit: 'int8' }),
  addMute: optional(Mute, {
    service: 'text?',
    check_name: 'text?',
    starts_at: 'timestamptz',
    ends_at: 'timestamptz',
    reason: 'text',
    author: 'text',
    every: 'text?',
    tz: 'text?',
    now: 'timestamptz',
    most: 'int8',
  }),
  listPastTimes: many(PastTime, { now: 'timestamptz', limit: 'int8' }),
  setMuteTime: exec({ id: 'int8', starts_at: 'timestamptz', ends_at: 'timestamptz' }),
  endMute: optional(MuteScope, { id: 'int8', now: 'timestamptz' }),
  countScope: one(Count, { service: 'text', check_name: 'text?' }),
})
