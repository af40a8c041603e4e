import type { Database } from '../../../db/client.ts'
import { addEventOnce } from '../../../db/ops/events.ts'
import type { Ending, Session } from '../../../db/ops/sessions.ts'
import { renewLease } from '../../../db/ops/sessions.ts'
import type { Clock } from '../../../kernel/time.ts'
import { Unavailable } from '../../../kernel/fault.ts'
import { messageOf, type Log } from '../../../kernel/log.ts'
import { repeat } from '../../../kernel/repeat.ts'
import { endMarked } from '../../../kernel/spawn.ts'
import type { RandomBytes } from '../../../kernel/token-hash.ts'
import type { Config } from '../config.ts'
import { failedOutcome, type Job, type Outcome, type Runner } from '../runners/runner.ts'
import { escalationOf, type Escalation } from './escalation.ts'
import { openOutput, type OutputOptions } from './output.ts'

export interface SupervisorOptions extends OutputOptions {
  readonly db: Database
  readonly clock: Clock
  readonly log: Log
  readonly config: Config
  readonly holder: string
  readonly random: RandomBytes
  /** Writes the end of the session, and begins the next tier's when there is one. */
  readonly finish: (ending: Ending, next: Escalation | undefined) => Promise<void>
}

/** A session that this process runs. */
export interface Supervised {
  readonly id: number
  /** Resolves when its end is written, or can't be. */
  readonly over: Promise<void>
  /** Looks whether somebody asked it to stop. */
  look(): void
  /** Stops it, and resolves when its end is written. */
  stop(): Promise<void>
}

/** Wall clock of a session by its tier, then the longest silences (decisions.md section 5). */
const LIMIT_MS: Readonly<Record<number, number>> = { 1: 600_000, 2: 1_200_000, 3: 1_800_000 }
const FIRST_OUTPUT_MS = 60_000
const IDLE_MS = 180_000
const HEARTBEAT_MS = 5_000
/** How long a runner may take to end once it is told to. */
const LEAVE_MS = 8_000
/** How often the last writes of a session may fail in all, and when they are tried again: about as long as a lease. */
const LAST_TRIES = 8
const LAST_PAUSE_MS = 2_000

/** Why a session is ended from outside. */
type Cause =
  | { readonly status: 'stopped' }
  | { readonly status: 'escalated'; readonly next: Escalation }
  | { readonly status: 'timed_out'; readonly problem: string }
  /** The row is no longer ours: nothing more may be written. */
  | { readonly status: 'lost' }

/** Runs a session to its end: deadlines, heartbeats, output, children, and the row's last state. */
export function supervise(
  options: SupervisorOptions,
  runner: Runner,
  session: Session & { readonly marker: string },
): Supervised {
  const { db, clock, log, config, holder, finish } = options
  const control = new AbortController()
  const output = openOutput(options, session.id)
  let cause: Cause | undefined
  /** The server is about to end: nothing is waited for. */
  let leaving = false
  let spoke = false
  let triesLeft = LAST_TRIES
  const began = clock.elapsed()
  let lastSign = began

  function end(why: Cause): void {
    if (cause !== undefined) return
    cause = why
    control.abort()
  }

  /** What the runner and the deadlines have in common: the agent has said or done something. */
  function alive(): void {
    spoke = true
    lastSign = clock.elapsed()
  }

  function watchTime(): void {
    const now = clock.elapsed()
    const limit = LIMIT_MS[session.tier] ?? FIRST_OUTPUT_MS
    const silence = now - lastSign
    if (now - began > limit) {
      end({ status: 'timed_out', problem: `it took over ${limit / 60_000} minutes` })
    } else if (silence > (spoke ? IDLE_MS : FIRST_OUTPUT_MS)) {
      const said = spoke ? 'was silent for' : 'gave no output within'
      end({ status: 'timed_out', problem: `it ${said} ${Math.round(silence / 1000)} s` })
    }
  }

  async function heartbeat(): Promise<void> {
    const lease = await renewLease(db, session.id, holder, clock.now())
    if (lease === undefined) end({ status: 'lost' })
    else if (lease.stop_asked) end({ status: 'stopped' })
  }
  // While it fails the lease may lapse; then the next renewal tells that it is lost.
  const heartbeats = repeat(clock, HEARTBEAT_MS, heartbeat, {
    fails: (error) =>
      log.warn('lease not renewed', { session: session.id, error: messageOf(error) }),
    works: () => log.info('lease is renewed again', { session: session.id }),
  })

  const job: Job = {
    session,
    marker: session.marker,
    config,
    signal: control.signal,
    alive,
    output: {
      ...output,
      write(kind, text) {
        alive()
        if (cause?.status !== 'lost') output.write(kind, text)
      },
    },
    escalate(reason, findings) {
      // The first cause counts: what is stopped or out of time begins nothing more.
      end({ status: 'escalated', next: escalationOf(session, reason, findings, options.random) })
    },
  }

  async function runToEnd(): Promise<void> {
    const stopWatch = clock.every(1_000, watchTime)
    try {
      const ending = await endingOfRun()
      stopWatch()
      const next = cause?.status === 'escalated' ? cause.next : undefined
      if (cause?.status !== 'lost') await atLast(() => finish(ending, next))
    } catch (error) {
      // The row stays as it is; it is failed by whoever looks next with a database.
      log.error('session not finished', { session: session.id, error: messageOf(error) })
    } finally {
      stopWatch()
      await heartbeats.stop()
    }
  }

  /** Runs it; all that it has put out is stored afterwards, whatever came of it. */
  async function endingOfRun(): Promise<Ending> {
    try {
      const outcome = await outcomeOf()
      // Where no descriptors are left to look, its outcome is kept.
      await endMarked(session.marker).catch((error: unknown) =>
        log.error('session not swept', { session: session.id, error: messageOf(error) }),
      )
      const ending = endingOf(outcome, cause, options.redact)
      const problem = cause?.status === 'timed_out' ? cause.problem : outcome.problem
      // Who stopped or escalated it has said why; what is lost is told by who has ended it.
      if (problem !== null && (cause === undefined || cause.status === 'timed_out')) {
        job.output.write('error', `Session ${ending.status}: ${problem}\n`)
        await record(ending.status, problem)
      }
      return ending
    } finally {
      await output.close(atLast)
    }
  }

  /** Does one of the last writes. The database may be back in a moment, and heartbeats keep the lease so long. */
  async function atLast(write: () => Promise<unknown>): Promise<void> {
    for (;;) {
      try {
        await write()
        return
      } catch (error) {
        triesLeft--
        const hopeless = leaving || triesLeft <= 0 || cause?.status === 'lost'
        if (hopeless || !(error instanceof Unavailable)) throw error
        log.warn('session not finished yet', { session: session.id, error: messageOf(error) })
      }
      const { promise, resolve } = Promise.withResolvers<void>()
      const stop = clock.every(LAST_PAUSE_MS, resolve)
      await promise
      stop()
    }
  }

  /** The runner's own outcome; one that does not leave in time, or breaks, is a failure. */
  async function outcomeOf(): Promise<Outcome> {
    const left = Promise.withResolvers<Outcome>()
    let timer: NodeJS.Timeout | undefined
    function hurry(): void {
      const late = failedOutcome('the runner did not end in time')
      timer = setTimeout(() => left.resolve(late), LEAVE_MS)
    }
    control.signal.addEventListener('abort', hurry)
    try {
      return await Promise.race([runner.run(job), left.promise])
    } catch (error) {
      if (error instanceof Unavailable) return failedOutcome('the database was out of reach')
      log.error('runner broke', {
        session: session.id,
        error: messageOf(error),
        ...(error instanceof Error ? { stack: error.stack } : {}),
      })
      return failedOutcome('internal error of the runner; see the log')
    } finally {
      control.signal.removeEventListener('abort', hurry)
      clearTimeout(timer)
    }
  }

  /** Tells people why it ended. Its end is written without that, too. */
  async function record(status: string, problem: string): Promise<void> {
    const message = options.redact(`Session ${session.id} ${status}: ${problem}`)
    const event = {
      session_id: session.id,
      level: 'warning',
      service: 'gatehouse',
      message,
    } as const
    try {
      await atLast(() => addEventOnce(db, { ...event, created_at: clock.now() }))
    } catch (error) {
      log.warn('event not recorded', { session: session.id, error: messageOf(error) })
    }
  }

  const over = runToEnd()
  return {
    id: session.id,
    over,
    look: () => void heartbeats.now(),
    stop() {
      leaving = true
      end({ status: 'stopped' })
      return over
    },
  }
}

function endingOf(
  { summary: said, cost_usd, num_turns, ...outcome }: Outcome,
  cause: Cause | undefined,
  redact: OutputOptions['redact'],
): Ending {
  const summary = said === null ? null : redact(said)
  const status = cause === undefined || cause.status === 'lost' ? outcome.status : cause.status
  const good = status === 'completed' || status === 'escalated'
  const exit_code = good ? 0 : (outcome.exit_code ?? 1)
  return { status, summary, cost_usd, num_turns, exit_code }
}
