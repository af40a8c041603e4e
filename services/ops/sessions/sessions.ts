import type { Database, Executor } from '../../../db/client.ts'
import { addEvent } from '../../../db/ops/events.ts'
import type { Ending, Lease, Session, Trigger } from '../../../db/ops/sessions.ts'
import {
  announceSessions,
  askToStop,
  findLease,
  finishSession,
  startSession,
} from '../../../db/ops/sessions.ts'
import type { Clock } from '../../../kernel/time.ts'
import { messageOf, type Log } from '../../../kernel/log.ts'
import { repeat } from '../../../kernel/repeat.ts'
import { isAlive } from '../../../kernel/spawn.ts'
import type { RunningConfig } from '../config.ts'
import type { Runner } from '../runners/runner.ts'
import type { Escalation } from './escalation.ts'
import { endLapsedSession } from './lapsed.ts'
import { supervise, type Supervised, type SupervisorOptions } from './supervisor.ts'

/** What is asked of a session that is to start. */
export interface StartRequest {
  readonly tier: number
  readonly trigger: Trigger
  readonly prompt: string | null
}

/** The sessions: one at a time, over all start paths and instances. */
export interface Sessions {
  /** The session that began, or undefined while another one runs. */
  start(request: StartRequest): Promise<Session | undefined>
  /** Asks a session to stop, whichever instance runs it; false when it does not run. */
  stop(id: number): Promise<boolean>
  /** Calls back whenever a session began or ended somewhere. */
  onChange(callback: () => void): void
  /** Stops what this process runs, and its children with it. */
  close(): Promise<void>
}

export interface SessionsOptions extends Omit<SupervisorOptions, 'finish' | 'config'> {
  readonly db: Database
  readonly clock: Clock
  readonly log: Log
  readonly config: RunningConfig
  /** The runner of new sessions. */
  readonly runner: () => Runner
  readonly holder: string
  readonly machine: string
}

/** A session whose row stands and that is to run: by the runner whose model its row shows. */
interface Begun {
  readonly session: Session
  readonly marker: string
  readonly runner: Runner
}

/** A lease that was not renewed for this long has lapsed. */
const LEASE_MS = 20_000
/** One heartbeat and a little: what is renewed is alive, whatever the clocks say. */
const RENEWED_MS = 6_000
const LOOK_MS = 5_000

/** Starts nothing yet, but ends what a dead process has left behind. */
export async function openSessions(options: SessionsOptions): Promise<Sessions> {
  const { db, clock, log, config, holder, machine, runner } = options
  const callbacks = new Set<() => void>()
  let running: Supervised | undefined
  /** The id of the session that this process has run last, or runs. */
  let lastRun: number | undefined
  /** Transactions under way that may begin a session. */
  let beginning = 0
  /** The last one of them has failed: the session that it was to begin may stand. */
  let inDoubt = false
  let closed = false
  let seen: { readonly id: number; readonly beat: number; readonly since: number } | undefined

  async function begin(
    tx: Executor,
    { tier, trigger, prompt }: StartRequest,
    parent: number | null,
  ): Promise<Begun | undefined> {
    const chosen = runner()
    const started = await startSession(tx, {
      tier,
      model: chosen.modelOf(config.current, tier),
      trigger,
      prompt_text: prompt === null ? null : options.redact(prompt),
      started_at: clock.now(),
      parent_session_id: parent,
      holder,
      machine,
    })
    if (started === undefined) return undefined
    await announceSessions(tx)
    const { marker, ...session } = started
    return { session, marker, runner: chosen }
  }

  async function start(request: StartRequest): Promise<Session | undefined> {
    if (closed) return undefined
    const tier = Math.min(request.tier, config.current.max_tier)
    const attempt = (): Promise<Begun | undefined> =>
      beginIn((tx) => begin(tx, { ...request, tier }, null))
    let started = await attempt()
    if (started === undefined && inDoubt) {
      // What stands in the way may be a session of ours that nobody runs.
      await endLapsed()
      started = await attempt()
    }
    return started && run(started)
  }

  /** Whether what it begins stands is not known when the answer to its commit is lost. */
  async function beginIn(
    work: (tx: Executor) => Promise<Begun | undefined>,
  ): Promise<Begun | undefined> {
    beginning++
    try {
      const begun = await db.transaction(work)
      if (begun !== undefined) inDoubt = false
      return begun
    } catch (error) {
      inDoubt = true
      throw error
    } finally {
      beginning--
    }
  }

  /** At once: nothing may come between the row and who looks after it. */
  function run({ session, marker, runner: chosen }: Begun): Session {
    const supervised = supervise(
      {
        ...options,
        config: config.current,
        finish: (ending, next) => finish(session, ending, next),
      },
      chosen,
      { ...session, marker },
    )
    running = supervised
    lastRun = session.id
    void supervised.over.then(() => {
      if (running === supervised) running = undefined
    })
    if (closed) void supervised.stop()
    return session
  }

  /** The end of a session, and the start of the one that it escalates to, in one transaction. */
  async function finish(
    session: Session,
    ending: Ending,
    next: Escalation | undefined,
  ): Promise<void> {
    const at = clock.now()
    const child = await beginIn(async (tx) => {
      if (!(await finishSession(tx, session.id, holder, ending, at))) return undefined
      await announceSessions(tx)
      if (next === undefined) return undefined
      const { id, tier } = session
      const { reason, findings, prompt } = next
      const leaves = closed
      const said = leaves
        ? `Session ${id} escalated, and the server stopped before tier ${tier + 1} began: ${reason}\n${findings}`
        : `Session ${id} escalated to tier ${tier + 1}: ${reason}`
      await addEvent(tx, {
        ...{ session_id: id, level: leaves ? 'warning' : 'info', service: null },
        ...{ message: options.redact(said), created_at: at },
      })
      if (leaves) return undefined
      return begin(tx, { tier: tier + 1, trigger: 'escalation', prompt }, id)
    })
    if (child !== undefined) run(child)
  }

  /** By the clocks or, as one of them may be wrong, by what is seen; at the start by the clocks alone. */
  function isSilent({ id, heartbeat_at }: Lease, atStart: boolean): boolean {
    const [beat, now] = [heartbeat_at.getTime(), clock.elapsed()]
    const before = seen?.id === id && seen.beat === beat ? seen : { id, beat, since: now }
    seen = before
    const unchanged = now - before.since
    if (unchanged > LEASE_MS) return true
    return clock.now().getTime() - beat > LEASE_MS && (atStart || unchanged > RENEWED_MS)
  }

  /** Ends a session that nobody runs: its row and its children. */
  async function endLapsed(atStart = false): Promise<void> {
    const lease = await findLease(db)
    if (lease === undefined || running?.id === lease.id) return
    const here = lease.machine === machine
    if (here && lease.holder === holder && beginning === 0) {
      const begun = lease.id === lastRun
      const cause = begun
        ? 'its end could not be written'
        : 'the database did not confirm its beginning'
      return endLapsedSession(options, { lease, holder: 'this', here, cause })
    }
    const dead = here && !isAlive(lease.holder)
    if (!dead && !isSilent(lease, atStart)) return
    const cause = 'the process that ran it is gone'
    return endLapsedSession(options, { lease, holder: dead ? 'dead' : 'silent', here, cause })
  }

  await endLapsed(true)
  const looks = repeat(clock, LOOK_MS, () => endLapsed(), {
    fails: (error) => log.warn('lapsed sessions not ended', { error: messageOf(error) }),
    works: () => log.info('lapsed sessions are ended again'),
  })
  await db.listen('ops_sessions', () => {
    running?.look()
    for (const callback of callbacks) callback()
  })

  return {
    start,
    async stop(id) {
      return db.transaction(async (tx) => {
        if (!(await askToStop(tx, id))) return false
        await announceSessions(tx)
        return true
      })
    },
    onChange: (callback) => void callbacks.add(callback),
    async close() {
      closed = true
      const looked = looks.stop()
      // What it has just escalated to is stopped as well.
      for (let one = running; one !== undefined; one = running) {
        await one.stop()
        if (running === one) running = undefined
      }
      await looked
    },
  }
}
