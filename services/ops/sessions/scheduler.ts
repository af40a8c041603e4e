import { sessionQueries as q } from '../../../db/ops/sessions.ts'
import { messageOf } from '../../../kernel/log.ts'
import type { Sessions, SessionsOptions } from './sessions.ts'

export interface SchedulerOptions extends Pick<SessionsOptions, 'db' | 'clock' | 'log' | 'config'> {
  readonly sessions: Sessions
}

/** The claim to start the next scheduled session, among all instances. */
type Claim =
  | { readonly name: 'none' }
  /** The acknowledgement of a claim made at this time is missing: the claim may stand. */
  | { readonly name: 'unknown'; readonly at: Date }
  /** This instance starts the session, and tries again if it fails. */
  | { readonly name: 'mine' }

const TICK_MS = 1_000
/** At start-up, another instance that started a moment ago has started the session for both. */
const SAME_START_MS = 60_000
/** Ticks of several instances are not exactly an interval apart. */
const SLACK_MS = 500

/**
 * Starts a session now and then one every interval, however many instances there are: the first one
 * to claim it in the database starts it. It is skipped while another session runs.
 */
export function startScheduler(options: SchedulerOptions): () => Promise<void> {
  const { db, clock, log, config, sessions } = options
  /** When the last scheduled session was due, in elapsed time. */
  let last: number | undefined
  let claim: Claim = { name: 'none' }
  let isBusy = false

  async function claimIt(interval: number): Promise<boolean> {
    if (claim.name === 'unknown') {
      const { claimed } = await q.isScheduleClaimed(db, { at: claim.at })
      if (claimed) claim = { name: 'mine' }
    }
    if (claim.name === 'mine') return true
    const now = clock.now()
    const apart = last === undefined ? Math.min(interval, SAME_START_MS) : interval
    const since = new Date(now.getTime() - apart + SLACK_MS)
    claim = { name: 'unknown', at: now }
    const isMine = (await q.claimSchedule(db, { now, since })) !== undefined
    claim = { name: isMine ? 'mine' : 'none' }
    return isMine
  }

  async function tick(): Promise<void> {
    const now = clock.elapsed()
    const interval = config.current.interval * 1_000
    if (isBusy || (last !== undefined && now - last < interval)) return
    isBusy = true
    try {
      if (await claimIt(interval)) {
        const started = await sessions.start({ tier: 1, trigger: 'scheduled', prompt: null })
        if (started === undefined) log.info('scheduled session left out: another one runs')
      }
      claim = { name: 'none' }
      last = now
    } catch (error) {
      // The next tick tries again, and keeps the claim: no other instance would start this session.
      log.warn('scheduled session not started', { error: messageOf(error) })
    } finally {
      isBusy = false
    }
  }

  let ticking = tick()
  const stop = clock.every(TICK_MS, () => {
    if (!isBusy) ticking = tick()
  })
  // A start that is under way must end before the database closes.
  return () => {
    stop()
    return ticking
  }
}
