import type { Database } from '../../../../db/client.ts'
import { destinationQueries } from '../../../../db/hooks/send/destinations.ts'
import { eventQueries } from '../../../../db/hooks/log/events.ts'
import { replayQueries as q, type RunningJob } from '../../../../db/hooks/send/replays.ts'
import { repeat, reportsTo } from '../../../../kernel/repeat.ts'
import type { Clock } from '../../../../kernel/time.ts'
import { findEvents, idRange, testedFilter } from '../../log/events/events.ts'
import {
  cursorAt,
  readCursor,
  searchOf,
  type EventQuery,
  type ExportQuery,
} from '../../log/events/filter.ts'
import type { HooksParts } from '../../registry.ts'
import { jobIdOf } from './jobs.ts'

/** Events that one look at the log finds. */
const PAGE = 200
/** A dry run counts up to here: beyond, it is enough to know that there are more. */
export const COUNT_REPLAYS_TO = 10_000

/** The events that a filter chooses, where they were counted to the end or to the bound. */
export interface CountedEvents {
  count: number
  /** Whether there are more, or may be. */
  more: boolean
  highest_id: number | null
}

interface CountedQuery extends ExportQuery {
  highest_id?: number | undefined
}

/**
 * Counts the events that a filter chooses, up to `COUNT_REPLAYS_TO`, or until the client is gone.
 * A job up to the highest of them sends the same events, unless retention has removed some.
 */
export async function countReplays(
  db: Database,
  clock: Clock,
  { highest_id, ...filter }: CountedQuery,
  client: { gone(): AbortSignal },
): Promise<CountedEvents> {
  const gone = client.gone()
  let count = 0
  let highest: number | null = null
  let cursor = highest_id === undefined ? '' : cursorAt(highest_id + 1)
  const counted = await countByIndex(db, clock, { ...filter, limit: PAGE, cursor })
  if (counted !== undefined) return counted
  for (;;) {
    const page = await findEvents(
      db,
      clock,
      { ...filter, limit: PAGE, cursor },
      { gone: () => gone },
    )
    highest ??= page.events[0]?.id ?? null
    count += page.events.length
    if (count > COUNT_REPLAYS_TO) {
      return { count: COUNT_REPLAYS_TO, more: true, highest_id: highest }
    }
    if (gone.aborted) return { count, more: true, highest_id: highest }
    if (page.next_cursor === null) return { count, more: false, highest_id: highest }
    cursor = page.next_cursor
  }
}

/** The same by an index alone; undefined where the events must be read. */
async function countByIndex(
  db: Database,
  clock: Clock,
  query: EventQuery,
): Promise<CountedEvents | undefined> {
  const filter = searchOf(query)
  if ((await testedFilter(db, filter, COUNT_REPLAYS_TO)) !== undefined) return undefined
  const { provider, event_type, type_like } = filter
  const range = await idRange(db, query, clock.now())
  const wanted = { provider, event_type, type_like, ...range, limit: COUNT_REPLAYS_TO + 1 }
  const { count, newest } = await eventQueries.countIds(db, wanted)
  // A type that was meant in another case is not found here.
  if (newest === null) return undefined
  const more = count > COUNT_REPLAYS_TO
  return { count: more ? COUNT_REPLAYS_TO : count, more, highest_id: newest }
}

const POLL_MS = 1_000
/** Events that one step of a plan finds. */
const STEP_EVENTS = 1_000

/** Looks for the events of jobs and ends jobs that have sent all, on any number of instances. */
export function startReplayPlanning({ db, clock, log, metrics }: HooksParts) {
  const stopping = new AbortController()
  let left = 0
  metrics.gauge('gatehouse_hooks_replay_job_left', 'Events left to replay jobs.', () => [
    [{}, left],
  ])

  async function work(): Promise<void> {
    let jobs = await q.listRunningJobs(db, {})
    while (jobs.some(({ state }) => state === 'planning') && !stopping.signal.aborted) {
      await planSteps(db, clock, jobs, stopping.signal)
      jobs = await q.listRunningJobs(db, {})
    }
    left = jobs.reduce((sum, job) => sum + job.left, 0)
    const ended = jobs.length === 0 ? [] : await q.endReplayJobs(db, {})
    for (const { destination, state, delivered, failed } of ended) {
      log.info('replay job ended', { job: jobIdOf(destination), state, delivered, failed })
    }
  }

  const reports = reportsTo(log, 'replay jobs do not go on', 'replay jobs go on again')
  const rounds = repeat(clock, POLL_MS, 'replay jobs', work, reports)
  return {
    /** A job has begun. */
    wake: () => void rounds.now(),
    async close(): Promise<void> {
      stopping.abort()
      await rounds.stop()
    },
  }
}

/** A step of each job that is planned: a job that fails does not hold up the others. */
async function planSteps(
  db: Database,
  clock: Clock,
  jobs: readonly RunningJob[],
  stop: AbortSignal,
): Promise<void> {
  const planning = jobs.filter(({ state }) => state === 'planning')
  const errors: unknown[] = []
  for (const job of planning) {
    await planStep(db, clock, job, stop).catch((error: unknown) => errors.push(error))
  }
  if (errors.length > 0) throw errors[0]
}

/**
 * Looks for the next events of a job, and writes their deliveries and the place where the search
 * stands in one transaction. Another instance may search the same step: the first one to write
 * counts. Retention removes nothing between the look at the events and the commit, because it
 * waits for the destination.
 */
async function planStep(
  db: Database,
  clock: Clock,
  { destination, filter, searched_from }: RunningJob,
  stop: AbortSignal,
): Promise<void> {
  const query = { ...(filter as ExportQuery), limit: STEP_EVENTS, cursor: cursorAt(searched_from) }
  const page = await findEvents(db, clock, query, { gone: () => stop })
  const next = page.next_cursor === null ? null : readCursor(page.next_cursor)
  const ids = page.events.map(({ id }) => id)
  await db.transaction(async (tx) => {
    await destinationQueries.lockDestination(tx, { name: destination })
    await q.planReplays(tx, { destination, searched_from, next, ids })
  })
}
