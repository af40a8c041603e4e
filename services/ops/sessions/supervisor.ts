import { eventQueries } from '../../../db/ops/events.ts'
import { sessionQueries as q, type Ending, type Started } from '../../../db/ops/sessions.ts'
import { Unavailable } from '../../../kernel/fault.ts'
import { messageOf } from '../../../kernel/log.ts'
import { repeat, retryWhileUnavailable, type Repeat } from '../../../kernel/repeat.ts'
import type { RandomBytes } from '../../../kernel/tokens.ts'
import type { Config } from '../config.ts'
import { endMarked } from '../processes/proc.ts'
import { failedOutcome, type Job, type Outcome, type Runner } from '../runners/runner.ts'
import { openOutput, type OutputOptions } from './output.ts'
import { escalationOf, type Escalation } from './prompt.ts'

export interface SupervisorOptions extends OutputOptions {
  readonly config: Config
  readonly holder: string
  readonly random: RandomBytes
  /** Records the end of the session. Starts the next tier if the session has escalated. */
  readonly finish: (ending: Ending, next: Escalation | undefined) => Promise<void>
}

/** A session that this process runs. */
export type Supervised = ReturnType<typeof supervise>

/** Why the supervisor ends a session. The first cause counts. */
type Cause =
  | { readonly status: 'stopped' }
  | { readonly status: 'escalated'; readonly next: Escalation }
  | { readonly status: 'timed_out'; readonly problem: string }

type State =
  /** The runner works and has put nothing out yet. */
  | { readonly name: 'starting' }
  | { readonly name: 'running' }
  /** The runner must end. */
  | { readonly name: 'stopping'; readonly cause: Cause }
  /** The runner has ended. Output, event and end are being written; heartbeats keep the lease. */
  | { readonly name: 'recording' }
  /** Another process owns the row, or has ended it: nothing more may be written. */
  | { readonly name: 'lost' }
  | { readonly name: 'ended' }

/** The longest run of a session by its tier, and the longest silences (decisions.md section 5). */
const MAX_RUN_MS: Readonly<Record<number, number>> = { 1: 600_000, 2: 1_200_000, 3: 1_800_000 }
const MAX_START_MS = 60_000
const MAX_IDLE_MS = 180_000
const HEARTBEAT_MS = 5_000
/** How long a runner may take to end once it is told to. */
const MAX_STOP_MS = 8_000
/** Together about as long as a lease lasts. */
const RECORD_TRIES = 8
const RECORD_PAUSE_MS = 2_000

/** Runs a session to its end: deadlines, heartbeats, output, processes, and the final row. */
export function supervise(options: SupervisorOptions, runner: Runner, session: Started) {
  const { db, clock, log, config, holder, redact } = options
  const { id } = session
  const output = openOutput(options, id)
  const startedAt = clock.elapsed()
  let lastActivity = startedAt
  let state: State = { name: 'starting' }
  /** Aborted when the runner is to end. */
  const runnerStop = new AbortController()
  /**
   * Aborted when failed writes are not repeated any more: the server closes, or the row is lost.
   */
  const giveUp = new AbortController()
  const record = retryWhileUnavailable({
    ...{ clock, tries: RECORD_TRIES, pauseMs: RECORD_PAUSE_MS, signal: giveUp.signal },
    onRetry: (error) =>
      log.warn('session not finished yet', { session: id, error: messageOf(error) }),
  })

  /** The only place that changes the state. */
  function enter(next: State): void {
    state = next
    if (next.name === 'stopping' || next.name === 'lost') runnerStop.abort()
    if (next.name === 'lost') giveUp.abort()
  }

  function end(cause: Cause): void {
    if (state.name === 'starting' || state.name === 'running') enter({ name: 'stopping', cause })
  }

  function noteActivity(): void {
    lastActivity = clock.elapsed()
    if (state.name === 'starting') enter({ name: 'running' })
  }

  function checkDeadlines(): void {
    const now = clock.elapsed()
    const silence = now - lastActivity
    const seconds = Math.round(silence / 1_000)
    const maxRun = MAX_RUN_MS[session.tier] ?? MAX_START_MS
    if (now - startedAt > maxRun) {
      end({ status: 'timed_out', problem: `it took over ${maxRun / 60_000} minutes` })
    } else if (state.name === 'starting' && silence > MAX_START_MS) {
      end({ status: 'timed_out', problem: `it gave no output within ${seconds} s` })
    } else if (silence > MAX_IDLE_MS) {
      end({ status: 'timed_out', problem: `it was silent for ${seconds} s` })
    }
  }

  async function renewLease(): Promise<void> {
    const lease = await q.renewLease(db, { id, holder, now: clock.now() })
    if (lease === undefined && state.name !== 'ended') enter({ name: 'lost' })
    if (lease?.stop_asked === true) end({ status: 'stopped' })
  }

  const job: Job = {
    session,
    marker: session.marker,
    config,
    signal: runnerStop.signal,
    noteActivity,
    output: {
      ...output,
      write(kind, text) {
        noteActivity()
        if (state.name !== 'lost') output.write(kind, text)
      },
    },
    escalate(reason, findings) {
      const next = escalationOf(session, reason, findings, options.random)
      end({ status: 'escalated', next })
    },
  }

  async function runToEnd(heartbeats: Repeat): Promise<void> {
    const stopDeadlines = clock.every(1_000, checkDeadlines)
    try {
      const outcome = await runUntilStopped()
      // The outcome counts even if there are no file descriptors left for this.
      await endMarked(session.marker).catch((error: unknown) =>
        log.error('session not swept', { session: id, error: messageOf(error) }),
      )
      const cause = state.name === 'stopping' ? state.cause : undefined
      if (state.name !== 'lost') enter({ name: 'recording' })
      await recordEnd(outcome, cause)
    } catch (error) {
      // The row stays as it is. Any instance fails it once it reaches the database.
      log.error('session not finished', { session: id, error: messageOf(error) })
    } finally {
      stopDeadlines()
      await heartbeats.stop()
      enter({ name: 'ended' })
    }
  }

  async function recordEnd(outcome: Outcome, cause: Cause | undefined): Promise<void> {
    const ending = endingOf(outcome, cause, redact)
    const problem = cause?.status === 'timed_out' ? cause.problem : outcome.problem
    // A session that was stopped or has escalated needs no reason: it is known.
    const needsReason = cause === undefined || cause.status === 'timed_out'
    if (problem !== null && needsReason && state.name !== 'lost') {
      output.write('error', `Session ${ending.status}: ${problem}\n`)
      await recordEvent(`Session ${id} ${ending.status}: ${problem}`)
    }
    await output.close(record)
    const next = cause?.status === 'escalated' ? cause.next : undefined
    if (state.name !== 'lost') await record(() => options.finish(ending, next))
  }

  /** The runner's outcome; a failure if the runner rejects or does not stop in time. */
  async function runUntilStopped(): Promise<Outcome> {
    const late = Promise.withResolvers<Outcome>()
    let timer: NodeJS.Timeout | undefined
    function startDeadline(): void {
      const outcome = failedOutcome('the runner did not end in time')
      timer = setTimeout(() => late.resolve(outcome), MAX_STOP_MS)
    }
    runnerStop.signal.addEventListener('abort', startDeadline)
    try {
      return await Promise.race([runner.run(job), late.promise])
    } catch (error) {
      if (error instanceof Unavailable) return failedOutcome('the database was out of reach')
      log.error('runner broke', {
        session: id,
        error: messageOf(error),
        ...(error instanceof Error ? { stack: error.stack } : {}),
      })
      return failedOutcome('internal error of the runner; see the log')
    } finally {
      runnerStop.signal.removeEventListener('abort', startDeadline)
      clearTimeout(timer)
    }
  }

  /** The end of the session is recorded even if its event can't be. */
  async function recordEvent(text: string): Promise<void> {
    const message = redact(text)
    const event = { session: id, level: 'warning', service: 'gatehouse', message }
    try {
      await record(() => eventQueries.addEventOnce(db, { ...event, now: clock.now() }))
    } catch (error) {
      log.warn('event not recorded', { session: id, error: messageOf(error) })
    }
  }

  // A failed heartbeat ends nothing: if the lease expires meanwhile, the next one finds it lost.
  const heartbeats = repeat(clock, HEARTBEAT_MS, renewLease, {
    fails: (error) => log.warn('lease not renewed', { session: id, error: messageOf(error) }),
    works: () => log.info('lease is renewed again', { session: id }),
  })
  const over = runToEnd(heartbeats)
  return {
    id,
    /** Whether its end is recorded, or can't be. */
    isOver: (): boolean => state.name === 'ended',
    /** Checks the row now: somebody may have asked the session to stop. */
    check: () => void heartbeats.now(),
    /** Stops the session because the server closes; resolves when it is over. Never rejects. */
    stop(): Promise<void> {
      giveUp.abort()
      end({ status: 'stopped' })
      return over
    },
  }
}

function endingOf(
  { summary, problem, cost_usd, num_turns, exit_code }: Outcome,
  cause: Cause | undefined,
  redact: OutputOptions['redact'],
): Ending {
  const status = cause?.status ?? (problem === null ? 'completed' : 'failed')
  const isGood = status === 'completed' || status === 'escalated'
  return {
    status,
    summary: summary === null ? null : redact(summary),
    exit_code: isGood ? 0 : (exit_code ?? 1),
    cost_usd,
    num_turns,
  }
}
