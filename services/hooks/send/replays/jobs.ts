import * as Type from '../../../../kernel/schema.ts'
import { replayQueries as q, ReplayJobRow } from '../../../../db/hooks/send/replays.ts'
import { Fault, forbidden, notFound } from '../../../../kernel/fault.ts'
import { isPublicTarget } from '../../../../kernel/net/outbound.ts'
import type { RandomBytes } from '../../../../kernel/tokens.ts'
import { makeChange, type ChangeNote, type ChangeTools } from '../../../audit.ts'
import type { ExportQuery } from '../../log/events/filter.ts'
import { redactUrlTokens } from '../../redact.ts'
import { ALLOW } from './attempt.ts'
import { chooseTarget, wrongTarget } from './outgoing.ts'
import { auditedUrl, type ReplayParts } from './replays.ts'

// A replay of many events is a row of its own kind among the destinations. The deliveries that
// `planning.ts` finds for it are claimed and sent like those of every destination.

/** Jobs that run at a time; each has its share of the requests under way. */
const MAX_RUNNING = 100
/** Those, and as many that have ended. */
const MAX_LISTED = 2 * MAX_RUNNING
/** Failed events that a job names. */
const MAX_FAILED_IDS = 100
/** A cursor begins above the highest id, and is a whole number as well. */
export const MAX_HIGHEST_ID = Number.MAX_SAFE_INTEGER - 1

const { state, filter, failed_ids, last_at, last_status, last_detail, started_at, ended_at } =
  ReplayJobRow.properties

/** How far a job has come. */
export const ReplayJob = Type.Object({
  id: Type.String(),
  state: {
    ...state,
    description: 'planning: the events are looked for; sending: until none waits for another try',
  },
  target: Type.String({ description: 'The URL, without its tokens' }),
  filter,
  highest_id: Type.Integer({ description: 'No event above it is sent' }),
  count: Type.Integer({ description: 'Events found; of a job that is planned, so far' }),
  done: Type.Integer({ description: 'delivered and failed together' }),
  delivered: Type.Integer(),
  failed: Type.Integer({ description: 'Given up after all tries, or removed by retention' }),
  failed_ids: { ...failed_ids, description: `The first ${MAX_FAILED_IDS} that were given up` },
  waiting: Type.Integer({ description: 'Not sent yet, or to be tried again' }),
  last_at,
  last_status,
  last_detail,
  started_at,
  ended_at,
})
export type ReplayJob = Type.Static<typeof ReplayJob>

/** What a job sends, and where to. */
interface JobRequest {
  filter: ExportQuery
  highest_id: number
  /** The default target where it is not given. */
  target: string | undefined
  /** The endpoint of the caller's token, whose revocation ends the job. */
  token_hash: Buffer | undefined
}

type StartTools = ChangeTools &
  Pick<ReplayParts, 'registry' | 'replayTargets'> & { random: RandomBytes }

/** How the name of the destination of a job begins; the id follows. */
const PREFIX = 'replay:'

/** The id of the job that has this destination. */
export function jobIdOf(destination: string): string {
  return destination.slice(PREFIX.length)
}

/**
 * Begins to send the events that a filter chooses, up to an id. Throws 422 for a target that no
 * event may be sent to, and 409 while too many jobs run.
 */
export async function startReplayJob(
  tools: StartTools,
  { filter, highest_id, target, token_hash }: JobRequest,
): Promise<ReplayJob> {
  const url = await allowedTarget(tools, target)
  const id = tools.random(8).toString('hex')
  const job = {
    destination: PREFIX + id,
    url: url.href,
    filter,
    highest_id,
    most: MAX_RUNNING,
    token_hash: token_hash ?? null,
  }
  await makeChange(tools, noteOf('start', `${id} to ${auditedUrl(url)}`), async (tx) => {
    const isHeld = token_hash === undefined || (await q.holdToken(tx, { token_hash }))
    if (isHeld === undefined) throw forbidden('The token was revoked meanwhile.')
    if ((await q.addReplayJob(tx, job)) === undefined) throw tooMany()
  })
  return findReplayJob(tools, id)
}

/**
 * The target of all events of a job. A name that can't be looked up now is not refused: each
 * attempt checks it again.
 */
async function allowedTarget({ registry, replayTargets }: StartTools, target: string | undefined) {
  const standard = registry.settings.replay_default_target
  const { url, trusted } = chooseTarget(target, standard, replayTargets())
  if (trusted || (await isPublicTarget(url)) !== false) return url
  throw wrongTarget(`The target is not on the public internet; ${ALLOW}.`)
}

function tooMany(): Fault {
  const message = `${MAX_RUNNING} replay jobs run already; wait for the end of one or cancel one.`
  return new Fault(409, 'TOO_MANY', message)
}

/** The line of a change in the audit. */
function noteOf(verb: string, subject: string): ChangeNote {
  return { service: 'hooks', action: `replay job ${verb}`, subject }
}

/** The jobs that run, and those that ended lately; newest first. */
export async function listReplayJobs({ db }: Pick<ChangeTools, 'db'>): Promise<ReplayJob[]> {
  const wanted = { destination: null, failed_ids: MAX_FAILED_IDS, limit: MAX_LISTED }
  const rows = await q.listReplayJobs(db, wanted)
  return rows.map(toReplayJob)
}

/** One of them; throws 404. */
export async function findReplayJob(
  { db }: Pick<ChangeTools, 'db'>,
  id: string,
): Promise<ReplayJob> {
  const wanted = { destination: PREFIX + id, failed_ids: MAX_FAILED_IDS, limit: 1 }
  const [row] = await q.listReplayJobs(db, wanted)
  if (row !== undefined) return toReplayJob(row)
  throw notFound('No job has this id; one that has ended is kept for a week, of the newest 100.')
}

function toReplayJob({ destination, url, planned: count, ...row }: ReplayJobRow): ReplayJob {
  const done = row.delivered + row.failed
  const given = Object.entries(row.filter).filter(([, text]) => text !== '')
  return {
    ...row,
    id: jobIdOf(destination),
    target: redactUrlTokens(url),
    filter: Object.fromEntries(given),
    count,
    done,
    waiting: count - done,
  }
}

/** Ends a job; what is being sent is sent. A job that has ended does not change. */
export async function cancelReplayJob(tools: ChangeTools, id: string): Promise<ReplayJob> {
  const wanted = { destination: PREFIX + id, token_hash: null }
  const job = await findReplayJob(tools, id)
  if (job.ended_at !== null) return job
  await makeChange(tools, noteOf('cancel', id), (tx) => q.cancelReplayJobs(tx, wanted))
  return findReplayJob(tools, id)
}
