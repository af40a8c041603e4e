import * as Type from '../../../kernel/schema.ts'
import { exec, many, nullable, optional, sqlFile, Timestamp } from '../../sql-file.ts'

/**
 * One time that an event was sent. `edited`: as a replay, with another body. `refused`: nothing was
 * connected to; `ms` until the answer.
 */
export const Replay = Type.Object({
  id: Type.Integer(),
  kind: Type.Enum(['replay', 'edited', 'forward', 'destination']),
  target: Type.String(),
  outcome: Type.Enum(['delivered', 'failed', 'refused']),
  status: nullable(Type.Integer()),
  ms: Type.Integer(),
  detail: nullable(Type.String()),
  /** The beginning of what the target answered; null where nothing was, or nothing is kept. */
  answer: nullable(Type.String()),
  at: Timestamp,
})
export type Replay = Type.Static<typeof Replay>

/** An attempt as the queries take it. */
export interface NotedAttempt extends Omit<Replay, 'id' | 'kind' | 'target'> {
  event_id: number
}

const JobState = Type.Enum(['planning', 'sending', 'finished', 'cancelled'])

/** A replay of many events: a destination of its own, and what was found for it. */
export const ReplayJobRow = Type.Object({
  /** The name of its destination. */
  destination: Type.String(),
  state: JobState,
  url: Type.String(),
  /** The filters of the log by name. */
  filter: Type.Record(Type.String()),
  highest_id: Type.Integer(),
  planned: Type.Integer(),
  delivered: Type.Integer(),
  failed: Type.Integer(),
  /** The first of those that failed. */
  failed_ids: Type.Array(Type.Integer()),
  last_at: nullable(Timestamp),
  last_status: nullable(Type.Integer()),
  last_detail: nullable(Type.String()),
  started_at: Timestamp,
  ended_at: nullable(Timestamp),
})
export type ReplayJobRow = Type.Static<typeof ReplayJobRow>

/** A job that has not ended. */
const RunningJob = Type.Object({
  ...Type.Pick(ReplayJobRow, ['destination', 'state', 'filter']).properties,
  searched_from: Type.Integer(),
  /** Events that were found and not sent yet. */
  left: Type.Integer(),
})
export type RunningJob = Type.Static<typeof RunningJob>

/** A job that has just ended. */
const EndedJob = Type.Pick(ReplayJobRow, ['destination', 'state', 'delivered', 'failed'])

export const replayQueries = sqlFile('sql/hooks/send/replays.sql', {
  noteAttempts: exec({ results: 'jsonb', kind: 'text', target: 'text' }),
  listReplays: many(Replay, { event: 'int8', limit: 'int8' }),
  listRecentTargets: many(Type.Object({ target: Type.String() }), {
    among: 'int8',
    hidden: 'text',
    limit: 'int8',
  }),
  holdToken: optional(Type.Object({ name: Type.String() }), { token_hash: 'bytea' }),
  addReplayJob: optional(Type.Pick(ReplayJobRow, ['destination']), {
    destination: 'text',
    url: 'text',
    filter: 'jsonb',
    highest_id: 'int8',
    token_hash: 'bytea?',
    most: 'int8',
  }),
  listReplayJobs: many(ReplayJobRow, { destination: 'text?', failed_ids: 'int8', limit: 'int8' }),
  listRunningJobs: many(RunningJob, {}),
  planReplays: optional(Type.Object({ state: JobState }), {
    destination: 'text',
    searched_from: 'int8',
    next: 'int8?',
    ids: 'jsonb',
  }),
  endReplayJobs: many(EndedJob, {}),
  cancelReplayJobs: many(EndedJob, { destination: 'text?', token_hash: 'bytea?' }),
  pruneReplayJobs: exec({}),
})
