import type { Database } from '../../db/client.ts'
import { claimSchedule, isScheduleClaimed } from '../../db/ops/settings.ts'
import type { Clock } from '../../kernel/time.ts'
import { messageOf, type Log } from '../../kernel/log.ts'
import type { RunningConfig } from './config.ts'
import type { Sessions } from './sessions/sessions.ts'

export interface SchedulerOptions {
  readonly db: Database
  readonly clock: Clock
  readonly log: Log
  readonly config: RunningConfig
  readonly sessions: Sessions
}

const TICK_MS = 1_000
/** Another instance that started a moment ago has started the session for both. */
const SAME_START_MS = 60_000
/** Ticks of several instances are not exactly an interval apart. */
const SLACK_MS = 500

/**
 * Starts a session now and then one each interval, however many instances there are: the first one to
 * claim a turn in the database starts it. A turn that falls into a running session is left out.
 */
export function startScheduler(options: SchedulerOptions): () => Promise<void> {
  const { db, clock, log, config, sessions } = options
  let last = Number.NEGATIVE_INFINITY
  /** This instance has the turn, and its session has not begun yet. */
  let mine = false
  /** A claim whose answer has not come: it may stand. */
  let asked: Date | undefined
  let busy = false

  async function look(): Promise<void> {
    const [now, elapsed] = [clock.now(), clock.elapsed()]
    const interval = config.current.interval * 1_000
    if (elapsed - last < interval) return
    busy = true
    try {
      const first = last === Number.NEGATIVE_INFINITY
      const apart = first ? Math.min(interval, SAME_START_MS) : interval
      const since = new Date(now.getTime() - apart + SLACK_MS)
      if (!mine && asked !== undefined) mine = await isScheduleClaimed(db, asked)
      if (!mine) {
        asked = now
        mine = await claimSchedule(db, now, since)
      }
      asked = undefined
      if (mine) {
        const started = await sessions.start({ tier: 1, trigger: 'scheduled', prompt: null })
        if (started === undefined) log.info('scheduled session left out: another one runs')
      }
      mine = false
      last = elapsed
    } catch (error) {
      // The next tick tries again, with the turn if that is had: nobody else would start this session.
      log.warn('scheduled session not started', { error: messageOf(error) })
    } finally {
      busy = false
    }
  }

  let looking = look()
  const stop = clock.every(TICK_MS, () => {
    if (!busy) looking = look()
  })
  // A start that is under way is let to its end: the database closes after it.
  return () => {
    stop()
    return looking
  }
}
