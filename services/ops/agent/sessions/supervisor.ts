import { setTimeout as sleep } from 'node:timers/promises'
import { once } from 'node:events'
import { eventQueries } from '../../../../db/ops/events.ts'
import {
  sessionQueries as q,
  type Ending,
  type Started,
} from '../../../../db/ops/agent/sessions.ts'
import { Unavailable } from '../../../../kernel/fault.ts'
import { messageOf } from '../../../../kernel/log.ts'
import {
  repeat,
  reportsTo,
  retryWhileUnavailable,
  type Repeat,
  type Retry,
} from '../../../../kernel/repeat.ts'
import type { RandomBytes } from '../../../../kernel/tokens.ts'
import type { Config } from '../../config.ts'
import { endMarked } from '../../../../kernel/processes/marked.ts'
import { MAX_RUN_MS } from '../runners/allowance.ts'
import { failedOutcome, type Job, type Outcome, type Runner } from '../runners/runner.ts'
import { openOutput, type Output, type OutputOptions } from './output.ts'
import { escalationOf, type Escalation } from './prompt.ts'

export interface SupervisorOptions extends OutputOptions {
  config: Config
  patience: Patience
  holder: string
  random: RandomBytes
  /** Records the end of the session, and does what its cause asks for. */
  finish: (session: Started, ending: Ending, cause: Cause | undefined) => Promise<void>
}

/** How long a session may be silent, in milliseconds, as configured now. */
export interface Patience {
  /** Before its first sign of life. */
  firstMs: () => number
  /** After any other one. */
  idleMs: () => number
}

/** A session that this process runs. */
export type Supervised = ReturnType<typeof supervise>

/** Why the supervisor ends a session. The first cause counts. */
export type Cause =
  | { status: 'stopped'; by: 'person' | 'server' }
  | { status: 'timed_out'; problem: string }
  | { status: 'escalated'; next: Escalation }

type State =
  /** The runner works and has put nothing out yet. */
  | 'starting'
  | 'running'
  /** The runner must end, for a cause. */
  | 'stopping'
  /** The runner has ended. Output, event and end are being written; heartbeats keep the lease. */
  | 'recording'
  /** Another process owns the row, or has ended it: nothing more may be written. */
  | 'lost'
  | 'ended'

const HEARTBEAT_MS = 5_000
/** How long a runner may take to end after the abort. */
const MAX_STOP_MS = 8_000
/** Together about as long as a lease lasts. */
const RECORD_TRIES = 8
const RECORD_PAUSE_MS = 2_000

/** What is known of a session while this process runs it. */
interface Run {
  options: SupervisorOptions
  runner: Runner
  session: Started
  output: Output
  startedAt: number
  /** When it last gave a sign of life. */
  lastActivity: number
  /** US dollars so far; null while nothing is known of them. */
  cost: number | null
  /** Changed by `enter` alone. */
  state: State
  /** Undefined as long as nothing but its runner ends it. */
  cause: Cause | undefined
  /** Aborted when the runner is to end. */
  runnerStop: AbortController
  /**
   * Aborted when failed writes are not repeated any more: the server closes, or the row is lost.
   */
  giveUp: AbortController
  /** Repeats what writes the end. */
  record: Retry
}

/** Runs a session to its end: deadlines, heartbeats, output, processes, and the final row. */
export function supervise(options: SupervisorOptions, runner: Runner, session: Started) {
  const { clock, log } = options
  const { id } = session
  const now = clock.elapsed()
  const runnerStop = new AbortController()
  const giveUp = new AbortController()
  const run: Run = {
    options,
    runner,
    session,
    runnerStop,
    giveUp,
    output: openOutput(options, id, runnerStop.signal),
    startedAt: now,
    lastActivity: now,
    cost: null,
    state: 'starting',
    cause: undefined,
    record: retryWhileUnavailable({
      tries: RECORD_TRIES,
      pauseMs: RECORD_PAUSE_MS,
      signal: giveUp.signal,
      onRetry: (error) =>
        log.warn('session not finished yet', { session: id, error: messageOf(error) }),
    }),
  }
  // A failed heartbeat ends nothing: if the lease expires meanwhile, the next one finds it lost.
  const reports = reportsTo(log, 'lease not renewed', 'lease is renewed again', { session: id })
  const heartbeats = repeat(
    clock,
    HEARTBEAT_MS,
    'lease of a session',
    () => renewLease(run),
    reports,
  )
  const over = runToEnd(run, heartbeats)
  return {
    id,
    /** Whether its end is recorded, or can't be. */
    isOver: (): boolean => run.state === 'ended',
    /** Checks the row now: somebody may have asked the session to stop. */
    check: () => void heartbeats.now(),
    /** Stops the session because the server closes; resolves when it is over. Never rejects. */
    stop(): Promise<void> {
      giveUp.abort()
      end(run, { status: 'stopped', by: 'server' })
      return over
    },
  }
}

/** The only place that changes the state. */
function enter(run: Run, next: State): void {
  run.state = next
  if (next === 'stopping' || next === 'lost') run.runnerStop.abort()
  if (next === 'lost') run.giveUp.abort()
}

function end(run: Run, why: Cause): void {
  if (run.state !== 'starting' && run.state !== 'running') return
  run.cause = why
  enter(run, 'stopping')
}

function noteActivity(run: Run): void {
  run.lastActivity = run.options.clock.elapsed()
  if (run.state === 'starting') enter(run, 'running')
}

function checkDeadlines(run: Run): void {
  const now = run.options.clock.elapsed()
  const silence = now - run.lastActivity
  const seconds = Math.round(silence / 1_000)
  const { firstMs, idleMs } = run.options.patience
  const isStarting = run.state === 'starting'
  const maxRun = MAX_RUN_MS[run.session.tier] ?? 600_000
  if (now - run.startedAt > maxRun) {
    end(run, { status: 'timed_out', problem: `it took over ${maxRun / 60_000} minutes` })
  } else if (isStarting && silence > firstMs()) {
    const problem = `it gave no output within ${seconds} s (OPS_FIRST_OUTPUT_S)`
    end(run, { status: 'timed_out', problem })
  } else if (!isStarting && silence > idleMs()) {
    end(run, { status: 'timed_out', problem: `it was silent for ${seconds} s (OPS_IDLE_S)` })
  }
}

async function renewLease(run: Run) {
  const { db, holder } = run.options
  const lease = await q.renewLease(db, { id: run.session.id, holder, cost_usd: run.cost })
  if (lease === undefined && run.state !== 'ended') enter(run, 'lost')
  if (lease?.stop_asked === true) end(run, { status: 'stopped', by: 'person' })
}

/** Never rejects. */
async function runToEnd(run: Run, heartbeats: Repeat): Promise<void> {
  const { clock, log } = run.options
  const { id, marker } = run.session
  const stopDeadlines = clock.every(1_000, () => checkDeadlines(run))
  try {
    const outcome = await runUntilStopped(run, jobOf(run, heartbeats))
    // The outcome counts even if there are no file descriptors left for this.
    await endMarked(marker).catch((error: unknown) =>
      log.error('session not swept', { session: id, error: messageOf(error) }),
    )
    if (run.state !== 'lost') enter(run, 'recording')
    await recordEnd(run, outcome)
  } catch (error) {
    // The row stays as it is. Any instance fails it once it reaches the database.
    log.error('session not finished', { session: id, error: messageOf(error) })
  } finally {
    stopDeadlines()
    await heartbeats.stop()
    enter(run, 'ended')
  }
}

/** The runner's outcome; a failure if the runner rejects or does not stop in time. */
async function runUntilStopped(run: Run, job: Job): Promise<Outcome> {
  try {
    return await Promise.race([outOfTime(job.signal), run.runner.run(job)])
  } catch (error) {
    if (error instanceof Unavailable) return failedOutcome('the database was out of reach')
    run.options.log.error('runner broke', {
      session: run.session.id,
      error: messageOf(error),
      ...(error instanceof Error ? { stack: error.stack } : {}),
    })
    return failedOutcome('internal error of the runner; see the log')
  }
}

async function outOfTime(stop: AbortSignal): Promise<Outcome> {
  await once(stop, 'abort')
  return sleep(MAX_STOP_MS, failedOutcome('the runner did not end in time'), { ref: false })
}

function jobOf(run: Run, heartbeats: Repeat): Job {
  const { options, session, output } = run
  return {
    session,
    holder: options.holder,
    marker: session.marker,
    config: options.config,
    signal: run.runnerStop.signal,
    noteActivity: () => noteActivity(run),
    noteCost(cost) {
      if (cost === run.cost) return
      run.cost = cost
      // Not at the next heartbeat: a server that crashes sooner, again and again, spends, too.
      void heartbeats.now()
    },
    output: {
      ...output,
      write(kind, text, call) {
        noteActivity(run)
        if (run.state !== 'lost') output.write(kind, text, call)
      },
    },
    escalate(reason, findings) {
      const next = escalationOf(session, reason, findings, options.random)
      end(run, { status: 'escalated', next })
    },
  }
}

async function recordEnd(run: Run, outcome: Outcome) {
  const { options, session, output, cause, record } = run
  const { db, clock, log, redact } = options
  const { id } = session
  const ending = endingOf(run, outcome)
  const problem = cause === undefined ? outcome.problem : problemOf(cause)
  if (problem !== null && run.state !== 'lost') {
    output.write('error', `Session ${ending.status}: ${problem}\n`)
    const message = redact(`Session ${id} ${ending.status}: ${problem}`)
    const event = { session: id, level: 'warning', service: 'gatehouse', message }
    const add = () => eventQueries.addEventOnce(db, { ...event, now: clock.now() })
    // The end of the session is recorded even if its event can't be.
    await record(add).catch((error: unknown) => {
      log.warn('event not recorded', { session: id, error: messageOf(error) })
    })
  }
  await output.close(record)
  if (run.state !== 'lost') await record(() => options.finish(session, ending, cause))
}

/** The cause for people; null if they caused it, or read it elsewhere. */
function problemOf(cause: Cause): string | null {
  if (cause.status === 'timed_out') return cause.problem
  return cause.status === 'stopped' && cause.by === 'server' ? 'the server stopped' : null
}

function endingOf({ options, cause, cost }: Run, outcome: Outcome): Ending {
  const { summary, problem, exit_code, cost_usd, num_turns, tool_calls } = outcome
  const status = cause?.status ?? (problem === null ? 'completed' : 'failed')
  const isGood = status === 'completed' || status === 'escalated'
  return {
    status,
    summary: summary === null ? null : options.redact(summary),
    exit_code: isGood ? 0 : (exit_code ?? 1),
    // A runner that broke, or did not end in time, tells no cost.
    cost_usd: cost_usd ?? cost,
    num_turns,
    tool_calls,
  }
}
