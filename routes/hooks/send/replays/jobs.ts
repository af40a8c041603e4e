import * as Type from '../../../../kernel/schema.ts'
import { nullable } from '../../../../db/sql-file.ts'
import { eventQueries } from '../../../../db/hooks/log/events.ts'
import {
  newReplayFragment,
  newReplayPage,
  replayJobFragment,
  replayJobPage,
  replayJobsFragment,
  replayJobsPage,
} from '../../../../html/hooks/send/replays/jobs.ts'
import { badRequest } from '../../../../kernel/fault.ts'
import type { Context } from '../../../../kernel/http/context.ts'
import { newForm, type FormState, type View } from '../../../../kernel/http/view.ts'
import { field, withDefault } from '../../../../kernel/validate.ts'
import {
  ExportQuery,
  fixedBounds,
  readSince,
  searchFields,
  SINCE_FORM,
} from '../../../../services/hooks/log/events/filter.ts'
import {
  cancelReplayJob,
  findReplayJob,
  listReplayJobs,
  MAX_HIGHEST_ID,
  ReplayJob,
  startReplayJob,
} from '../../../../services/hooks/send/replays/jobs.ts'
import {
  COUNT_REPLAYS_TO,
  countReplays,
} from '../../../../services/hooks/send/replays/planning.ts'
import { replayer } from '../../access.ts'
import { refuseForeignSearch } from '../../log/events/foreign-search.ts'
import { api, form, page, type HooksRoutes } from '../../kit.ts'
import { target_url } from './replays.ts'

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

/** What the form of `/replays/new` sends. */
const ReplayJobForm = Type.Object({
  ...searchFields,
  since: bound('Lower bound'),
  until: bound('Upper bound'),
  highest_id: field(HighestId, 'must be the id of an event.'),
  target_url: withDefault(Type.String(), ''),
})

/** What a dry run has counted, or the job that was started. */
export const ReplayedEvents = Type.Object({
  count: Type.Union([Type.Integer(), Type.Null()], {
    description: `Of a dry run, up to ${COUNT_REPLAYS_TO}; a job counts while it is planned`,
  }),
  more: Type.Boolean({ description: 'There are more events than count' }),
  highest_id: nullable(Type.Integer()),
  job: nullable(ReplayJob),
})

export const ReplayJobList = Type.Object({ jobs: Type.Array(ReplayJob) })

const params = { job: Type.String() }
const path = '/api/v1/replay-jobs/:job'

/** Many events are sent as one job. */
export const replayJobEndpoints = [
  api({
    method: 'POST',
    path: '/api/v1/events/replay',
    access: replayer,
    id: 'startReplayJob',
    tag: 'Events',
    summary: 'Send all events that a filter chooses to a target again.',
    description:
      'With dry_run the events are only counted. Without, highest_id must be that of the dry ' +
      'run: the events that were counted are then sent by a job, the oldest first and many at ' +
      'a time. A delivery that fails is tried again for a day, as those of destinations are.',
    body: ReplayJobRequest,
    returns: { description: 'The count of a dry run, or the job', schema: ReplayedEvents },
    refuses: [409, 422],
    async answer({ app: { hooks }, caller, actor, body, context }) {
      const { dry_run, target_url: target, highest_id, ...given } = body
      const filter = { ...given, since: String(given.since), until: String(given.until) }
      if (dry_run) {
        const wanted = { ...filter, highest_id }
        const counted = await countReplays(hooks.db, hooks.clock, wanted, context)
        return { ...counted, job: null }
      }
      if (highest_id === undefined) throw badRequest(NOT_COUNTED, 'highest_id')
      const request = { filter, highest_id, target, token_hash: caller?.token_hash }
      const job = await startReplayJob({ ...hooks, actor }, request)
      hooks.replayPlanning.wake()
      return { count: null, more: false, highest_id, job }
    },
  }),

  api({
    method: 'GET',
    path: '/api/v1/replay-jobs',
    access: replayer,
    id: 'listReplayJobs',
    tag: 'Events',
    summary: 'List the replay jobs that run, and those that ended lately.',
    description: 'A job that has ended is kept for a week, of the newest 100.',
    returns: { description: 'The jobs, newest first', schema: ReplayJobList },
    answer: async ({ app: { hooks } }) => ({ jobs: await listReplayJobs(hooks) }),
  }),

  api({
    method: 'GET',
    path,
    access: replayer,
    id: 'getReplayJob',
    tag: 'Events',
    summary: 'Tell how far a replay job has come.',
    params,
    returns: { description: 'The job', schema: ReplayJob },
    answer: ({ app: { hooks }, params: { job } }) => findReplayJob(hooks, job),
  }),

  api({
    method: 'DELETE',
    path,
    access: replayer,
    id: 'cancelReplayJob',
    tag: 'Events',
    summary: 'Cancel a replay job.',
    description: 'What is being sent is sent. A job that has ended does not change.',
    params,
    returns: { description: 'The job as it ended', schema: ReplayJob },
    async answer({ app: { hooks }, actor, params: { job } }) {
      const cancelled = await cancelReplayJob({ ...hooks, actor }, job)
      await hooks.registry.refresh()
      return cancelled
    },
  }),
]

/** `/replays`: the same for people, who begin at the log. */
export const replayJobPages = [
  page({
    path: '/replays',
    async answer({ app: { hooks } }) {
      const jobs = await listReplayJobs(hooks)
      return { page: () => replayJobsPage(jobs), fragment: () => replayJobsFragment(jobs) }
    },
  }),

  page({
    path: '/replays/new',
    query: ExportQuery,
    async answer({ app, query, context, now }) {
      refuseForeignSearch(query, context)
      return newReplayView(app, fixedBounds(query, now), context, newForm(ReplayJobForm))
    },
  }),

  form({
    path: '/replays',
    body: ReplayJobForm,
    async answer({ app: { hooks }, actor, body }) {
      const { highest_id, target_url, ...given } = body
      const filter = { ...given, since: String(given.since), until: String(given.until) }
      const target = target_url.trim() || undefined
      const request = { filter, highest_id, target, token_hash: undefined }
      const { id } = await startReplayJob({ ...hooks, actor }, request)
      hooks.replayPlanning.wake()
      return { location: `/replays/${id}`, done: ['started'] }
    },
    refused({ app, context }, refused) {
      const given = Object.keys(ExportQuery.properties).map((name) => [
        name,
        refused.typed[name] ?? '',
      ])
      const filter = Object.fromEntries(given) as ExportQuery
      return newReplayView(app, filter, context, refused)
    },
  }),

  page({
    path: '/replays/:job',
    params,
    answer: async ({ app: { hooks }, params: { job } }) =>
      jobView(await findReplayJob(hooks, job)),
  }),

  form({
    path: '/replays/:job/cancel',
    params,
    async answer({ app: { hooks }, actor, params: { job } }) {
      const cancelled = await cancelReplayJob({ ...hooks, actor }, job)
      await hooks.registry.refresh()
      return { ...jobView(cancelled), done: ['cancelled'] }
    },
  }),
]

function jobView(job: ReplayJob): View {
  return {
    page: () => replayJobPage(job),
    fragment: () => replayJobFragment(job),
    location: `/replays/${job.id}`,
  }
}

/** How long a page may count. */
const COUNT_MS = 3_000

async function newReplayView(
  { hooks }: HooksRoutes,
  filter: ExportQuery,
  context: Context,
  state: FormState,
): Promise<View> {
  const { db, clock, registry } = hooks
  const { newest } = await eventQueries.streamBounds(db, { replayed: 0 })
  const typed = Number(state.typed?.['highest_id'])
  const highest_id = Number.isSafeInteger(typed) && typed > 0 ? typed : newest
  const gone = AbortSignal.any([context.gone(), AbortSignal.timeout(COUNT_MS)])
  const counted = await countReplays(db, clock, { ...filter, highest_id }, { gone: () => gone })
  const view = {
    filter,
    counted,
    form: state,
    highestId: counted.highest_id ?? highest_id,
    defaultTarget: registry.settings.replay_default_target,
  }
  return { page: () => newReplayPage(view), fragment: () => newReplayFragment(view) }
}

const NOT_COUNTED =
  'highest_id is missing; ask with dry_run first, and give the highest_id of its answer.'
