import Type from 'typebox'
import { nullable, Timestamp, many, optional, sqlFile } from '../sql-file.ts'

/** One time that an event was sent. `refused`: nothing was connected to; `ms` until the answer. */
export const Replay = Type.Object({
  id: Type.Integer(),
  kind: Type.Enum(['replay', 'forward', 'destination']),
  target: Type.String(),
  outcome: Type.Union([
    Type.Literal('delivered'),
    Type.Literal('failed'),
    Type.Literal('refused'),
  ]),
  status: nullable(Type.Integer()),
  ms: Type.Integer(),
  detail: nullable(Type.String()),
  /** The beginning of what the target answered; null where nothing was, or nothing is kept. */
  answer: nullable(Type.String()),
  at: Timestamp,
})
export type Replay = Type.Static<typeof Replay>

export const replayQueries = sqlFile('sql/hooks/replays.sql', {
  saveReplay: optional(Type.Pick(Replay, ['id']), {
    event: 'int8',
    kind: 'text',
    target: 'text',
    outcome: 'text',
    status: 'int2?',
    ms: 'int4',
    detail: 'text?',
    answer: 'text?',
    at: 'timestamptz',
  }),
  listReplays: many(Replay, { event: 'int8', limit: 'int8' }),
})
