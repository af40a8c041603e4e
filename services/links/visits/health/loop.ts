import type { Database } from '../../../../db/client.ts'
import { healthQueries as q, type ClaimedCheck } from '../../../../db/links/visits/health.ts'
import { shorten } from '../../../../kernel/markup.ts'
import type { Log } from '../../../../kernel/log.ts'
import { repeat, reportsTo } from '../../../../kernel/repeat.ts'
import type { Clock } from '../../../../kernel/time.ts'
import { DAY_MS } from '../visits/visit-counts.ts'
import { lookAt, REST_MS, type LookTools, type Outcome } from './look.ts'

/** How often each address is checked. */
export type CheckInterval = 'daily' | 'weekly'

export interface HealthLoopOptions extends Omit<LookTools, 'signal'> {
  db: Database
  clock: Clock
  log: Log
}

const ROUND_MS = 1_000
const INTERVAL_MS = { daily: DAY_MS, weekly: 7 * DAY_MS } as const

/** Fewer than the look-ups of names that the system does at a time: others need some, too. */
const MAX_RUNNING = 3
/** More than two requests and the rest between them take: an older claim is of nobody. */
const CLAIM_S = 60
/** Due links among which other hosts than the busy ones are looked for. */
const WINDOW = 500
/** Links of one step of a walk. */
const WALK_LINKS = 500
const WALK_REST_MS = 3_600_000
const MAX_PROBLEM = 300

/** Where the walk over all links is. */
interface Walk {
  /** The last slug that it came by. */
  after: string
  /** When the next step may be, as the clock counts. */
  nextAt: number
}

/** What a process knows of its checks. */
interface State extends HealthLoopOptions {
  intervalMs: number
  signal: AbortSignal
  walk: Walk
  running: Set<Promise<void>>
  /** Why a result could not be stored since the last round. */
  failure: unknown
}

/**
 * Checks the addresses of links, spread over the interval. What is due is in the database: a
 * restart goes on, and of several instances one claims each host.
 */
export function startHealthLoop(options: HealthLoopOptions, interval: CheckInterval) {
  const { clock, log } = options
  const stopping = new AbortController()
  const state: State = {
    ...options,
    intervalMs: INTERVAL_MS[interval],
    signal: stopping.signal,
    walk: { after: '', nextAt: -Infinity },
    running: new Set(),
    failure: undefined,
  }
  const reports = reportsTo(log, 'addresses of links not checked', 'addresses are checked again')
  const rounds = repeat(clock, ROUND_MS, 'checks of links', () => round(state), reports)
  return {
    /** Makes a round now, and waits for the checks that it has begun. */
    async round() {
      await rounds.now()
      await Promise.all(state.running)
    },
    /** Resolves when nothing more is stored. Checks that have not ended are dropped. */
    async close() {
      stopping.abort()
      await rounds.stop()
      await Promise.all(state.running)
    },
  }
}

async function round(state: State): Promise<void> {
  await walkOn(state)
  const limit = MAX_RUNNING - state.running.size
  if (limit > 0) {
    const asked = { now: state.clock.now(), seconds: CLAIM_S, window: WINDOW, limit }
    for (const check of await q.claimChecks(state.db, asked)) begin(state, check)
  }
  const { failure } = state
  state.failure = undefined
  if (failure !== undefined) throw failure
}

/**
 * Plans the checks of links that have none: new ones, those with another address, and all whose
 * check is further away than the interval. Rests after the last link.
 */
async function walkOn({ db, clock, walk, intervalMs }: State): Promise<void> {
  if (clock.elapsed() < walk.nextAt) return
  const now = clock.now()
  const until = new Date(now.getTime() + intervalMs)
  const { links, last } = await q.listUnplanned(db, {
    after: walk.after,
    until,
    links: WALK_LINKS,
  })
  const rows = links.map((link) => ({ ...link, host: new URL(link.url).hostname }))
  if (rows.length > 0) {
    await q.planChecks(db, { links: rows, now, seconds: intervalMs / 1_000 })
  }
  walk.after = last ?? ''
  if (last !== null) return
  walk.nextAt = clock.elapsed() + WALK_REST_MS
  await q.forgetHosts(db, { before: new Date(now.getTime() - DAY_MS) })
}

function begin(state: State, claimed: ClaimedCheck): void {
  const job = check(state, claimed)
    .catch((error: unknown) => void (state.failure = error))
    .finally(() => state.running.delete(job))
  state.running.add(job)
}

async function check(state: State, claimed: ClaimedCheck): Promise<void> {
  const { db, clock, signal } = state
  const { slug, url, host } = claimed
  const outcome = await lookAt(state, url)
  // What a stop has interrupted says nothing of the address.
  if (signal.aborted) return
  const now = clock.now()
  const free_at = new Date(now.getTime() + REST_MS)
  const found = healthAfter(claimed, outcome, now, state.intervalMs)
  await q.saveCheck(db, { slug, url, host, now, free_at, ...found })
}

/**
 * What is known of a link after a look at its address. It is broken when two looks in a row, at
 * least a day apart, found no page or no host; any other answer ends that.
 */
function healthAfter(
  before: Pick<ClaimedCheck, 'state' | 'since' | 'missing_since'>,
  { kind, status, problem }: Outcome,
  now: Date,
  intervalMs: number,
) {
  const missing_since = kind === 'missing' ? (before.missing_since ?? now) : null
  const again = missing_since === null ? undefined : new Date(missing_since.getTime() + DAY_MS)
  const isDoubted = again !== undefined && now < again
  const state = kind !== 'missing' ? kind : isDoubted ? 'unknown' : 'broken'
  return {
    state,
    status,
    problem: problem === null ? null : shorten(problem, MAX_PROBLEM),
    since: before.state === state && before.since !== null ? before.since : now,
    missing_since,
    due_at: isDoubted ? again : new Date(now.getTime() + intervalMs),
  }
}
