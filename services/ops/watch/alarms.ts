import { checkQueries } from '../../../db/ops/watch/checks.ts'
import type { Database, Executor } from '../../../db/client.ts'
import type { Log } from '../../../kernel/log.ts'
import { repeat, reportsTo, type Repeat } from '../../../kernel/repeat.ts'
import type { Clock } from '../../../kernel/time.ts'
import { reconcileNotices, type Firing } from '../../notices/notices.ts'
import { BEHIND_S, type CheckLoop } from './checks/loop.ts'

export interface AlarmOptions {
  db: Database
  clock: Clock
  log: Log
  /** What the disk of the embedded database has free, in bytes; undefined with a server. */
  freeSpace: () => number | undefined
}

const ROUND_MS = 5_000
const PREFIX = 'gatehouse '
const MIB = 1024 * 1024
/** `gatehouse check` warns of the same. */
const LOW_FREE = 1024 * MIB
/** Above what the embedded database needs for any change: with less no notice can be stored. */
const MIN_FREE = 64 * MIB

/**
 * Tells people once when Gatehouse itself is in trouble, and once when that is over: its disk fills
 * up, or its checks do not run.
 */
export function startAlarms(options: AlarmOptions, loop: Pick<CheckLoop, 'problem'>): Repeat {
  const { db, clock, log, freeSpace } = options
  const began = clock.elapsed()
  /**
   * Whether the round before had a problem of the checks, too. One round alone tells nothing: after
   * an outage of the database it may come before the first round of checks. True at first, so that
   * a notice of an earlier process does not end and begin again.
   */
  let hadProblem = true

  async function round(): Promise<void> {
    // Until then this process can't know whether its checks run in time.
    if (clock.elapsed() - began < BEHIND_S * 1_000) return
    const now = clock.now()
    const problem = loop.problem()
    const group = { service: 'gatehouse', site: 'ops', prefix: PREFIX, now } as const
    await reconcileNotices(db, group, async (executor) => [
      ...diskFiring(freeSpace()),
      ...(await checksFiring(executor, hadProblem ? problem : undefined, now)),
    ])
    hadProblem = problem !== undefined
  }

  const reports = reportsTo(
    log,
    'alarms of gatehouse not looked up',
    'alarms of gatehouse are looked up again',
  )
  return repeat(clock, ROUND_MS, 'alarms of gatehouse', round, reports)
}

function diskFiring(free: number | undefined): readonly Firing[] {
  if (free === undefined || free >= LOW_FREE) return []
  const left = `${Math.floor(free / MIB)} MiB`
  const path = '/notices'
  const low = `The disk of the database has ${left} free: make room`
  const full = `The disk of the database is nearly full (${left} free): soon nothing is stored`
  const warning: Firing = { key: `${PREFIX}disk low`, level: 'warning', message: low, path }
  if (free >= MIN_FREE) return [warning]
  return [warning, { key: `${PREFIX}disk full`, level: 'critical', message: full, path }]
}

/**
 * Checks do not run when this process says so and no other one runs what is due. Each instance by
 * itself would tell of what another one does for it.
 */
async function checksFiring(
  db: Executor,
  problem: string | undefined,
  now: Date,
): Promise<readonly Firing[]> {
  if (problem === undefined) return []
  const { late } = await checkQueries.findLate(db, { now, seconds: BEHIND_S })
  if (!late) return []
  const message = `Checks do not run: ${problem}`
  return [{ key: `${PREFIX}checks`, level: 'critical', message, path: '/checks' }]
}
