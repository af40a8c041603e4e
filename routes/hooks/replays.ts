import Type from 'typebox'
import { nullable } from '../../db/sql-file.ts'
import { eventPage } from '../../html/hooks/events/detail.ts'
import { replaysList } from '../../html/hooks/replays.ts'
import { badRequest } from '../../kernel/fault.ts'
import { field, withDefault } from '../../kernel/validate.ts'
import { readSince, searchFields, SINCE_FORM } from '../../services/hooks/events/filter.ts'
import {
  findReplayable,
  MAX_HIGHEST_ID,
  MAX_REPLAYED,
  ReplayJob,
} from '../../services/hooks/replays/jobs.ts'
import { replayEvent, Sent } from '../../services/hooks/replays/replays.ts'
import { replayer } from './access.ts'
import { EventId, readEvent } from './events/detail.ts'
import { api, form } from './kit.ts'

const target_url = field(
  Type.Optional(
    Type.String({ description: 'Where to; the default target of the settings if absent' }),
  ),
  'must be text.',
)

/** Not a duration: what a dry run has counted must not change with time. */
function bound(description: string) {
  const Bound = Type.Union([Type.String(), Type.Integer({ minimum: 0 })], { description })
  return field(withDefault(Bound, ''), SINCE_FORM, [
    (given) => readSince(String(given)) !== undefined,
    SINCE_FORM,
  ])
}
const HighestId = Type.Integer({
  minimum: 1,
  maximum: MAX_HIGHEST_ID,
  description: 'The highest event that may be sent: highest_id of the dry run',
})

export const ReplayJobRequest = Type.Object(
  {
    ...searchFields,
    since: bound('Lower bound: a time, or the id of an event'),
    until: bound('Upper bound: before a time, or up to the id of an event'),
    highest_id: field(Type.Optional(HighestId), 'must be the id of an event.'),
    target_url,
    dry_run: field(
      withDefault(Type.Boolean({ description: 'Only count the events' }), false),
      'must be true or false.',
    ),
  },
  {
    additionalProperties: false,
    examples: [{ provider: 'code_host', since: '2026-01-31T12:00:00Z', dry_run: true }],
  },
)

/** The events that a filter chooses, and the job that sends them. */
export const ReplayedEvents = Type.Object({
  count: Type.Integer(),
  highest_id: nullable(Type.Integer()),
  job: nullable(ReplayJob),
})

export const ReplayRequest = Type.Object(
  { target_url },
  { additionalProperties: false, examples: [{ target_url: 'https://example.com/hook' }] },
)

const params = { job: Type.String() }
const path = '/api/v1/replay-jobs/:job'

/** An event is sent again, or many events as one job; one job runs at a time. */
export const replayEndpoints = [
  form({
    path: '/log/:id/replay',
    params: { id: EventId },
    /** Absent or empty for the default target. */
    body: Type.Object({ target_url: withDefault(Type.String(), '') }),
    async answer({ app, actor, params: { id }, body }) {
      // A replay that failed is in the list with its reason, like one that was delivered.
      await replayEvent({ ...app.hooks, actor }, id, body.target_url.trim() || undefined)
      const view = await readEvent(app, id, { isReplayed: true })
      return {
        page: () => eventPage(view),
        fragment: () => replaysList(view),
        location: `/log/${id}?replayed=1`,
      }
    },
    async refused({ app, params: { id } }, refused) {
      const view = await readEvent(app, id, { refused })
      return { page: () => eventPage(view) }
    },
  }),

  api({
    method: 'POST',
    path: '/api/v1/events/:id/replay',
    access: replayer,
    id: 'replayEvent',
    tag: 'Events',
    summary: 'Send an event to a target again.',
    description:
      'The stored bytes, signed again where the provider signs. Private and local addresses are ' +
      'refused unless an operator has allowed them.',
    params: { id: EventId },
    body: ReplayRequest,
    returns: { description: 'What became of it, as the page of the event shows it', schema: Sent },
    refuses: [422],
    answer: ({ app, actor, params: { id }, body }) =>
      replayEvent({ ...app.hooks, actor }, id, body.target_url),
  }),

  api({
    method: 'POST',
    path: '/api/v1/events/replay',
    access: replayer,
    id: 'startReplayJob',
    tag: 'Events',
    summary: 'Send all events that a filter chooses to a target again.',
    description:
      'With dry_run the events are only counted. Without, highest_id must be that of the dry ' +
      'run: exactly the events that were counted are then sent, oldest first, one after the ' +
      `other. A job has ${MAX_REPLAYED} events at most, and one job runs at a time.`,
    body: ReplayJobRequest,
    returns: { description: 'The count, and the job unless dry_run', schema: ReplayedEvents },
    refuses: [409, 422],
    async answer({ app: { hooks }, caller, actor, body, context }) {
      const { dry_run, target_url, ...filter } = body
      if (!dry_run && filter.highest_id === undefined) throw badRequest(NOT_COUNTED, 'highest_id')
      const bounds = { since: String(filter.since), until: String(filter.until) }
      const wanted = { ...filter, ...bounds }
      const ids = await findReplayable(hooks.db, hooks.clock, wanted, context)
      const counted = { count: ids.length, highest_id: ids.at(-1) ?? null }
      if (dry_run) return { ...counted, job: null }
      const revoked = caller && hooks.endpoints.signalOf(caller)
      const request = { ids, target: target_url, actor, revoked }
      return { ...counted, job: await hooks.replayJobs.start(request) }
    },
  }),

  api({
    method: 'GET',
    path,
    access: replayer,
    id: 'getReplayJob',
    tag: 'Events',
    summary: 'Tell how far a replay job has come.',
    description: 'The running job and the last one are known, until the server restarts.',
    params,
    returns: { description: 'The job', schema: ReplayJob },
    answer: ({ app: { hooks }, params: { job } }) => hooks.replayJobs.find(job),
  }),

  api({
    method: 'DELETE',
    path,
    access: replayer,
    id: 'cancelReplayJob',
    tag: 'Events',
    summary: 'Cancel a replay job.',
    description: 'The event that is being sent is sent. A job that has ended does not change.',
    params,
    returns: { description: 'The job as it ended', schema: ReplayJob },
    answer: ({ app: { hooks }, actor, params: { job } }) => hooks.replayJobs.cancel(job, actor),
  }),
]

const NOT_COUNTED =
  'highest_id is missing; ask with dry_run first, and give the highest_id of its answer.'
