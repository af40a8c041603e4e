import Type from 'typebox'
import type { Database } from '../../../db/client.ts'
import { nullable, Timestamp } from '../../../db/sql-file.ts'
import { Fault, notFound, unavailable, Unavailable } from '../../../kernel/fault.ts'
import { messageOf } from '../../../kernel/log.ts'
import { isPublicTarget } from '../../../kernel/net/outbound.ts'
import type { Actor } from '../../../kernel/actor.ts'
import type { Clock } from '../../../kernel/time.ts'
import { noteChange, type ChangeNote } from '../../audit.ts'
import { cursorAt, type ExportQuery } from '../events/filter.ts'
import { findEvents } from '../events/events.ts'
import { chooseTarget, wrongTarget } from './outgoing.ts'
import { redactUrlTokens } from '../redact.ts'
import type { HooksParts } from '../registry.ts'
import { ALLOW } from './attempt.ts'
import { auditedUrl, replayOfJob, type ReplayParts } from './replays.ts'

/** Events that one job sends at most. */
export const MAX_REPLAYED = 1_000
/** A cursor begins above the highest id, and is a whole number as well. */
export const MAX_HIGHEST_ID = Number.MAX_SAFE_INTEGER - 1
const PAGE = 200

/** The events of a job: those that the log's filters choose, up to an id. */
interface ReplayFilter extends ExportQuery {
  highest_id?: number | undefined
}

/** How far a job has come. */
export const ReplayJob = Type.Object({
  id: Type.String(),
  state: Type.Enum(['running', 'cancelling', 'cancelled', 'finished', 'interrupted'], {
    description:
      'cancelling: one event is still being sent; interrupted: the database was out of reach',
  }),
  target: Type.String({ description: 'The URL, without its tokens' }),
  count: Type.Integer(),
  done: Type.Integer({ description: 'delivered and failed together' }),
  delivered: Type.Integer(),
  failed: Type.Integer(),
  failed_ids: Type.Array(Type.Integer()),
  last_id: Type.Union([Type.Integer(), Type.Null()], {
    description: 'The last event that is done',
  }),
  started_at: Timestamp,
  ended_at: nullable(Timestamp),
})
export type ReplayJob = Type.Static<typeof ReplayJob>

/**
 * The ids of the events that a filter chooses, oldest first. A later call with the highest of them
 * finds the same events, unless retention has removed some. Refuses more than a job may send.
 */
export async function findReplayable(
  db: Database,
  clock: Clock,
  { highest_id, ...filter }: ReplayFilter,
  client: { gone(): AbortSignal },
): Promise<readonly number[]> {
  const ids: number[] = []
  let cursor = highest_id === undefined ? '' : cursorAt(highest_id + 1)
  for (;;) {
    const page = await findEvents(db, clock, { ...filter, limit: PAGE, cursor }, client)
    ids.push(...page.events.map(({ id }) => id))
    if (ids.length > MAX_REPLAYED) throw tooMany(ids[MAX_REPLAYED - 1])
    // A search that nobody waits for ends early.
    if (client.gone().aborted) throw unavailable('The events were not looked for to the end.')
    if (page.next_cursor === null) return ids.reverse()
    cursor = page.next_cursor
  }
}

function tooMany(oldest: number | undefined): Fault {
  const message =
    `More than ${MAX_REPLAYED} events match; narrow the filter. ` +
    `The newest ${MAX_REPLAYED} of them begin at event ${oldest}: since takes that id.`
  return new Fault(422, 'TOO_MANY', message, { field: 'since' })
}

/** What became of one event of many: as of a single replay, or why it was not sent. */
async function tryReplay(parts: ReplayParts, id: number, targetUrl: string) {
  try {
    return await replayOfJob(parts, id, targetUrl)
  } catch (error) {
    // Retention may have removed the event since it was found.
    if (!(error instanceof Fault)) throw error
    return { outcome: 'failed', status: null, ms: 0, detail: error.message } as const
  }
}

type JobParts = ReplayParts & Pick<HooksParts, 'random' | 'log' | 'metrics'>

/** What a job sends, oldest event first. */
interface JobRequest {
  ids: readonly number[]
  /** The default target where it is not given. */
  target: string | undefined
  actor: Actor
  /** Aborted when its caller may replay no more. */
  revoked: AbortSignal | undefined
}

/** A job, what cancels it, and its end. */
interface Running {
  job: ReplayJob
  /** Its line is in the audit; before that nothing is sent. */
  noted: Promise<void>
  cancelled: AbortController
  over: Promise<void>
}

/** Jobs of this process, one at a time: they send many events, one after the other. */
export function openReplayJobs({ post, ...rest }: JobParts) {
  /** Ends the exchange with a target when the process may wait for it no longer. */
  const closed = new AbortController()
  const { signal } = closed
  const parts: JobParts = { ...rest, post: (request) => post({ ...request, signal }) }
  /** The running job, or the last one. */
  let last: Running | undefined
  parts.metrics.gauge('gatehouse_hooks_replay_job_left', 'Events left to a replay job.', () => {
    const { job } = last ?? {}
    return [[{}, job?.ended_at === null ? job.count - job.done : 0]]
  })

  function find(id: string): Running {
    if (last?.job.id === id) return last
    throw notFound('No job has this id; a restart of the server ends a job and forgets it.')
  }

  return {
    /**
     * Begins to send events to a target. Throws 422 for a target that no event may be sent to, and
     * 409 while another job runs.
     */
    async start(request: JobRequest) {
      const target = await allowedTarget(parts, request.target)
      if (last?.job.ended_at === null) throw alreadyRuns(last.job)
      last = begin(parts, request, target)
      const { job, noted } = last
      await noted
      return job
    },
    find: (id: string): ReplayJob => find(id).job,
    /** Ends a job after the event that is being sent. */
    async cancel(id: string, actor: Actor): Promise<ReplayJob> {
      const { job, cancelled, over } = find(id)
      if (job.state === 'running') await noteChange(parts.db, actor, noteOf('cancel', job.id))
      cancelled.abort()
      await over
      return job
    },
    /** The program stops: the event that is being sent may still be answered until `close`. */
    stop: () => last?.cancelled.abort(),
    async close(): Promise<void> {
      last?.cancelled.abort()
      closed.abort()
      await last?.over
    },
  }
}

/**
 * The target of all events of a job, also if the settings change meanwhile. A name that can't be
 * looked up now is not refused: each event is tried for itself.
 */
async function allowedTarget({ registry, replayTargets }: JobParts, target: string | undefined) {
  const standard = registry.settings.replay_default_target
  const { url, trusted } = chooseTarget(target, standard, replayTargets())
  if (trusted || (await isPublicTarget(url)) !== false) {
    return { url, text: target ?? standard ?? '' }
  }
  throw wrongTarget(`The target is not on the public internet; ${ALLOW}.`)
}

/** The line of a change in the audit. */
function noteOf(verb: string, subject: string): ChangeNote {
  return { service: 'hooks', action: `replay job ${verb}`, subject }
}

function begin(
  parts: JobParts,
  { ids, actor, revoked }: JobRequest,
  { url, text }: { url: URL; text: string },
): Running {
  const { random, clock } = parts
  const job: ReplayJob = {
    id: random(8).toString('hex'),
    state: 'running',
    target: redactUrlTokens(url.href),
    count: ids.length,
    ...{ done: 0, delivered: 0, failed: 0, failed_ids: [], last_id: null },
    started_at: clock.now(),
    ended_at: null,
  }
  const cancelled = new AbortController()
  const stop = AbortSignal.any([cancelled.signal, ...(revoked ? [revoked] : [])])
  stop.addEventListener('abort', () => {
    if (job.ended_at === null) job.state = 'cancelling'
  })
  const events = ids.length === 1 ? '1 event' : `${ids.length} events`
  const subject = `${job.id}: ${events} to ${auditedUrl(url)}`
  const noted = noteChange(parts.db, actor, noteOf('start', subject))
  const send = () => sendAll(parts, job, ids, text, stop)
  return { job, noted, cancelled, over: work(parts, job, noted.then(send)) }
}

/** Follows a job to the end of what it sends. */
async function work(
  { log, clock }: JobParts,
  job: ReplayJob,
  sending: Promise<void>,
): Promise<void> {
  try {
    await sending
    job.state = job.done === job.count ? 'finished' : 'cancelled'
  } catch (error) {
    job.state = 'interrupted'
    const down = error instanceof Unavailable
    log[down ? 'warn' : 'error']('replay job interrupted', {
      job: job.id,
      error: messageOf(error),
    })
  }
  job.ended_at = clock.now()
  const { id, state, done, delivered, failed } = job
  log.info('replay job ended', { job: id, state, done, delivered, failed })
}

/** One event after the other, so that the target gets them in their order. */
async function sendAll(
  parts: JobParts,
  job: ReplayJob,
  ids: readonly number[],
  target: string,
  stop: AbortSignal,
): Promise<void> {
  for (const id of ids) {
    if (stop.aborted) return
    const { outcome } = await tryReplay(parts, id, target)
    job.done++
    if (outcome === 'delivered') job.delivered++
    else job.failed = job.failed_ids.push(id)
    job.last_id = id
  }
}

function alreadyRuns({ id, state, done, count }: ReplayJob): Fault {
  const message =
    state === 'cancelling'
      ? `The job ${id} is being cancelled; try again once its last event is sent.`
      : `The job ${id} runs, ${done} of ${count} events done; wait for its end or cancel it.`
  return new Fault(409, 'RUNNING', message)
}
