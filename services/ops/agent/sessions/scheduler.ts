import { noticeQueries } from '../../../../db/notices.ts'
import { sessionQueries as q } from '../../../../db/ops/agent/sessions.ts'
import { serverQueries } from '../../../../db/server.ts'
import { messageOf } from '../../../../kernel/log.ts'
import { repeat, reportsTo } from '../../../../kernel/repeat.ts'
import { addEvent } from '../../events.ts'
import { beginNotice, endNotice } from '../../notices.ts'
import { readPause } from '../pause.ts'
import type { Sessions, SessionsOptions } from './sessions.ts'

type Basis = Pick<SessionsOptions, 'db' | 'clock' | 'log' | 'config' | 'redact'>

export interface SchedulerOptions extends Basis {
  sessions: Sessions
}

const TICK_MS = 1_000
/** At start-up, another instance that started a moment ago has started the session for both. */
const SAME_START_MS = 60_000
/** Ticks of several instances are not exactly an interval apart. */
const SLACK_MS = 500
/** A claim that is further ahead was made before the database's clock was set back. */
const AHEAD_MS = 60_000
/** The scheduler has stopped when it has not worked for this long; a database restarts sooner. */
const STOPPED_MS = 60_000
const WATCH_MS = 10_000
const NOTICE_KEY = 'schedule'

/**
 * Starts a session now and then one every interval, however many instances there are: the first
 * one to claim it in the database starts it. It is skipped while another session runs.
 */
export function startScheduler(options: SchedulerOptions): () => Promise<void> {
  const { db, clock, log, config, sessions } = options
  const watch = watchScheduler(options)
  /** When the last scheduled session was due, in elapsed time. */
  let last: number | undefined
  /** When this instance first claimed the session that is due. The claim may stand. */
  let claimedAt: Date | undefined

  /** Claims the session that is due. True if this instance has it, also when it claims it again. */
  async function claimIt(interval: number): Promise<boolean> {
    const { at: now } = await serverQueries.readClock(db, {})
    const isMade = claimedAt !== undefined
    claimedAt ??= now
    const apart = last === undefined ? Math.min(interval, SAME_START_MS) : interval
    const since = new Date(claimedAt.getTime() - apart + SLACK_MS)
    const ahead = new Date(now.getTime() + AHEAD_MS)
    const claim = await q.claimSchedule(db, { at: claimedAt, since, ahead, again: isMade })
    return claim !== undefined
  }

  async function startDue(): Promise<void> {
    const now = clock.elapsed()
    const interval = config.current.interval * 1_000
    if (last !== undefined && now - last < interval) return
    if (await claimIt(interval)) {
      const started = await sessions.start({ tier: 1, trigger: 'scheduled', prompt: null })
      if (started === undefined) await logLeftOut(options)
    }
    claimedAt = undefined
    last = now
  }

  async function tick(): Promise<void> {
    try {
      await startDue()
      watch.worked()
    } catch (error) {
      watch.failed(error)
      throw error
    }
  }

  // A tick that fails is repeated, and finds its claim: no other instance would start the session.
  const reports = reportsTo(log, 'scheduled session not started', 'scheduled sessions start again')
  const ticks = repeat(clock, TICK_MS, 'schedule of sessions', tick, reports)
  void ticks.now()
  return async () => {
    await Promise.all([ticks.stop(), watch.stop()])
  }
}

async function logLeftOut({ db, log }: SchedulerOptions): Promise<void> {
  const { investigations } = await readPause(db)
  if (investigations.paused) log.info('scheduled session left out: investigations are paused')
  else log.info('scheduled session left out: another one runs')
}

/**
 * Notifies people once when the scheduler has stopped, because its ticks fail or one does not end,
 * and once when it goes on.
 */
function watchScheduler({ db, clock, log, redact }: SchedulerOptions) {
  const began = clock.elapsed()
  let workedAt: number | undefined
  let cause = 'an attempt has not ended'
  /**
   * `stopped`: people are not notified yet, because the event can't be stored. `unknown`: the
   * process before this one may have notified them.
   */
  let state: 'unknown' | 'works' | 'stopped' | 'notified' = 'unknown'
  let stoppedAt = began

  function eventOf(level: 'critical' | 'info', message: string) {
    const about = { session: null, service: 'gatehouse', now: clock.now() }
    return { ...about, level, message: redact(message) }
  }

  async function look(): Promise<void> {
    const since = workedAt ?? began
    if (clock.elapsed() - since > STOPPED_MS) {
      if (state === 'notified') return
      state = 'stopped'
      stoppedAt = since
      const event = eventOf('critical', `Scheduled sessions have stopped: ${cause}`)
      await db.transaction((tx) => beginNotice(tx, event, NOTICE_KEY, { waits: true }))
      state = 'notified'
    } else if (workedAt !== undefined && state !== 'works') {
      await tellWorks(workedAt)
      state = 'works'
    }
  }

  /** Ends the notice. If none could be written during the failure, one event tells of all of it. */
  async function tellWorks(since: number): Promise<void> {
    if (state === 'unknown') {
      const lasting = await noticeQueries.listLasting(db, { prefix: NOTICE_KEY, limit: 1 })
      if (lasting.length === 0) return
      const event = eventOf('info', 'Scheduled sessions start again')
      return db.transaction((tx) => endNotice(tx, event, NOTICE_KEY))
    }
    const minutes = Math.round((since - stoppedAt) / 60_000)
    const event = eventOf('info', `Scheduled sessions start again after ${minutes} min: ${cause}`)
    if (state === 'notified') return db.transaction((tx) => endNotice(tx, event, NOTICE_KEY))
    await addEvent(db, event, { notify: true })
  }

  const reports = reportsTo(log, 'schedule not watched', 'schedule is watched again')
  const looks = repeat(clock, WATCH_MS, 'watch of the schedule', look, reports)
  return {
    worked() {
      workedAt = clock.elapsed()
    },
    failed(error: unknown) {
      cause = messageOf(error)
    },
    stop: looks.stop,
  }
}
