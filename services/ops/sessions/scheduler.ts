import { sessionQueries as q } from '../../../db/ops/sessions.ts'
import { repeat, reportsTo } from '../../../kernel/repeat.ts'
import type { Sessions, SessionsOptions } from './sessions.ts'

type Basis = Pick<SessionsOptions, 'db' | 'clock' | 'log' | 'config'>

export interface SchedulerOptions extends Basis {
  sessions: Sessions
}

const TICK_MS = 1_000
/** At start-up, another instance that started a moment ago has started the session for both. */
const SAME_START_MS = 60_000
/** Ticks of several instances are not exactly an interval apart. */
const SLACK_MS = 500
/** A claim that is further ahead was made before a clock was set back. */
const AHEAD_MS = 60_000

/**
 * Starts a session now and then one every interval, however many instances there are: the first
 * one to claim it in the database starts it. It is skipped while another session runs.
 */
export function startScheduler(options: SchedulerOptions): () => Promise<void> {
  const { db, clock, log, config, sessions } = options
  /** When the last scheduled session was due, in elapsed time. */
  let last: number | undefined
  /** When this instance first claimed the session that is due. The claim may stand. */
  let claimedAt: Date | undefined

  /** True if the claim is this instance's: for the same session, it is so each time. */
  async function claimIt(interval: number): Promise<boolean> {
    const isMade = claimedAt !== undefined
    claimedAt ??= clock.now()
    const apart = last === undefined ? Math.min(interval, SAME_START_MS) : interval
    const since = new Date(claimedAt.getTime() - apart + SLACK_MS)
    const ahead = new Date(clock.now().getTime() + AHEAD_MS)
    const claim = await q.claimSchedule(db, { at: claimedAt, since, ahead, again: isMade })
    return claim !== undefined
  }

  async function tick(): Promise<void> {
    const now = clock.elapsed()
    const interval = config.current.interval * 1_000
    if (last !== undefined && now - last < interval) return
    if (await claimIt(interval)) {
      const started = await sessions.start({ tier: 1, trigger: 'scheduled', prompt: null })
      if (started === undefined) log.info('scheduled session left out: another one runs')
    }
    claimedAt = undefined
    last = now
  }

  // A tick that fails is repeated, and finds its claim: no other instance would start the session.
  const reports = reportsTo(log, 'scheduled session not started', 'scheduled sessions start again')
  const ticks = repeat(clock, TICK_MS, 'schedule of sessions', tick, reports)
  void ticks.now()
  return ticks.stop
}
