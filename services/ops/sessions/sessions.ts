import type { Executor } from '../../../db/client.ts'
import {
  sessionQueries as q,
  type Ending,
  type Session,
  type Started,
  type Trigger,
} from '../../../db/ops/sessions.ts'
import type { RunningConfig } from '../config.ts'
import { addEvent } from '../events.ts'
import type { Runner } from '../runners/runner.ts'
import { watchLeases, type LeaseOptions } from './leases.ts'
import type { Escalation } from './prompt.ts'
import { supervise, type Supervised, type SupervisorOptions } from './supervisor.ts'

export interface StartRequest {
  readonly tier: number
  readonly trigger: Trigger
  readonly prompt: string | null
}

/** The sessions: one at a time, over all start paths and instances. */
export type Sessions = Awaited<ReturnType<typeof openSessions>>

export interface SessionsOptions
  extends Omit<SupervisorOptions, 'finish' | 'config'>, LeaseOptions {
  readonly config: RunningConfig
  /** The runner of new sessions. */
  readonly runner: () => Runner
}

/** A session with the runner whose model its row shows. */
interface Begun {
  readonly session: Started
  readonly runner: Runner
}

/** Starts nothing yet, but fails the session of a process that has ended. */
export async function openSessions(options: SessionsOptions) {
  const { db, clock, config, holder, machine } = options
  const callbacks = new Set<() => void>()
  /** The newest session that this process runs or ran. */
  let newest: Supervised | undefined
  /** Transactions under way that may begin a session. */
  let beginning = 0
  let closed = false

  const leases = await watchLeases(options, {
    runs: (id) => newest?.id === id && !newest.isOver(),
    orphanCause(id) {
      if (beginning > 0) return undefined
      const wasRun = newest?.id === id
      return wasRun ? 'its end could not be written' : 'the database did not confirm its beginning'
    },
  })

  /** The session that began; undefined while another one runs. */
  async function start(request: StartRequest): Promise<Session | undefined> {
    if (closed) return undefined
    const tier = Math.min(request.tier, config.current.max_tier)
    const attempt = () => transact((tx) => begin(tx, { ...request, tier }, null))
    let begun = await attempt()
    // Nobody may be running the session that is in the way.
    if (begun === undefined && (await leases.check())) begun = await attempt()
    if (begun === undefined) return undefined
    const { marker: _marker, ...session } = begun.session
    return session
  }

  /**
   * Runs what the transaction begins. If its acknowledgement is lost, the row may stand, as an
   * orphan.
   */
  async function transact(
    work: (tx: Executor) => Promise<Begun | undefined>,
  ): Promise<Begun | undefined> {
    beginning++
    try {
      const begun = await db.transaction(work)
      if (begun !== undefined) run(begun)
      return begun
    } finally {
      beginning--
    }
  }

  async function begin(
    tx: Executor,
    { tier, trigger, prompt }: StartRequest,
    parent: number | null,
  ): Promise<Begun | undefined> {
    const runner = options.runner()
    await q.lockStarts(tx, {})
    const session = await q.startSession(tx, {
      tier,
      model: runner.modelOf(config.current, tier),
      trigger,
      prompt_text: prompt === null ? null : options.redact(prompt),
      now: clock.now(),
      parent_session_id: parent,
      holder,
      machine,
    })
    if (session === undefined) return undefined
    await q.announceSessions(tx, {})
    return { session, runner }
  }

  function run({ session, runner }: Begun): void {
    const finishIt: SupervisorOptions['finish'] = (ending, next) => finish(session, ending, next)
    const parts = { ...options, config: config.current, finish: finishIt }
    newest = supervise(parts, runner, session)
    if (closed) void newest.stop()
  }

  /**
   * Ends a session, and starts the next tier in the same transaction: no other start comes between
   * them.
   */
  async function finish(
    session: Session,
    ending: Ending,
    next: Escalation | undefined,
  ): Promise<void> {
    const now = clock.now()
    const { id, tier } = session
    await transact(async (tx) => {
      const finished = await q.finishSession(tx, { id, holder, now, ...ending })
      if (finished === undefined) return undefined
      await q.announceSessions(tx, {})
      if (next === undefined) return undefined
      const { reason, findings, prompt } = next
      const message = closed
        ? `Session ${id} escalated, and the server stopped before tier ${tier + 1} began: ${reason}\n${findings}`
        : `Session ${id} escalated to tier ${tier + 1}: ${reason}`
      await addEvent(tx, {
        ...{ session: id, level: closed ? 'warning' : 'info', service: null },
        ...{ message: options.redact(message), now },
      })
      if (closed) return undefined
      return begin(tx, { tier: tier + 1, trigger: 'escalation', prompt }, id)
    })
  }

  await db.listen('ops_sessions', () => {
    newest?.check()
    for (const callback of callbacks) callback()
  })

  return {
    start,
    /** Asks a session to stop, whichever instance runs it; false if it does not run. */
    async stop(id: number): Promise<boolean> {
      return db.transaction(async (tx) => {
        if ((await q.askToStop(tx, { id })) === undefined) return false
        await q.announceSessions(tx, {})
        return true
      })
    },
    /** Calls back whenever a session began or ended on any instance. */
    onChange: (callback: () => void) => void callbacks.add(callback),
    /** Stops the session that this process runs, with its processes. */
    async close(): Promise<void> {
      closed = true
      const stopped = leases.stop()
      // A session that has just escalated has a successor.
      while (newest !== undefined && !newest.isOver()) await newest.stop()
      await stopped
    },
  }
}
