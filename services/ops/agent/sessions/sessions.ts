import type { Executor } from '../../../../db/client.ts'
import {
  sessionQueries as q,
  type Ending,
  type Session,
} from '../../../../db/ops/agent/sessions.ts'
import type { Actor } from '../../../../kernel/actor.ts'
import { noteChange, type ChangeNote } from '../../../audit.ts'
import type { RunningConfig } from '../../config.ts'
import { addEvent } from '../../events.ts'
import { holdPause, pauseProblem } from '../pause.ts'
import type { Runner } from '../runners/runner.ts'
import { watchLeases, type LeaseOptions } from './leases.ts'
import { supervise, type Cause, type Supervised, type SupervisorOptions } from './supervisor.ts'

interface StartRequest extends Pick<Session, 'tier' | 'trigger'> {
  prompt: string | null
  /** The alert that it looks into. */
  alert?: number
  /** Who asked for the session; undefined for a scheduled one. */
  actor?: Actor
}

/** What a session is started for, as it was found in the transaction that starts it. */
export interface FoundRequest extends StartRequest {
  /** Notes in the same transaction which session has begun. */
  note: (session: number) => Promise<void>
}

/** Sessions that nobody starts by hand: none of them begins while investigations are paused. */
const BY_ITSELF: readonly Session['trigger'][] = ['scheduled', 'alert', 'escalation']

/** The sessions: one at a time, over all start paths and instances. */
export type Sessions = Awaited<ReturnType<typeof openSessions>>

export interface SessionsOptions
  extends Omit<SupervisorOptions, 'finish' | 'config'>, LeaseOptions {
  config: RunningConfig
  /** The runner of new sessions. */
  runner: () => Runner
}

/** What this process knows of the sessions that it began. */
interface OwnState {
  options: SessionsOptions
  /** The newest session that this process runs or ran. */
  newest: Supervised | undefined
  /** Transactions under way that may begin a session. */
  beginning: number
  closed: boolean
}

/** Starts nothing yet, but fails the session of a process that has ended. */
export async function openSessions(options: SessionsOptions) {
  const { db, config } = options
  const own: OwnState = { options, newest: undefined, beginning: 0, closed: false }
  const callbacks = new Set<() => void>()
  const withinTiers = (request: StartRequest): StartRequest => {
    return { ...request, tier: Math.min(request.tier, config.current.max_tier) }
  }

  const leases = await watchLeases(options, {
    runs: (id) => own.newest?.id === id && !own.newest.isOver(),
    orphanCause(id) {
      if (own.beginning > 0) return undefined
      const wasRun = own.newest?.id === id
      return wasRun ? 'its end could not be written' : 'the database did not confirm its beginning'
    },
  })

  await db.listen('ops_sessions', () => {
    own.newest?.check()
    for (const callback of callbacks) callback()
  })

  return {
    /**
     * The session that began; undefined while another one runs, or while investigations are paused
     * and nobody asks for it.
     */
    async start(request: StartRequest): Promise<Session | undefined> {
      if (own.closed) return undefined
      const attempt = () => transact(own, (tx) => begin(tx, options, withinTiers(request)))
      let begun = await attempt()
      if (begun === undefined) {
        // The session in the way may be one that nobody runs any more.
        await leases.check()
        begun = await attempt()
      }
      if (begun === undefined) return undefined
      const { marker: _marker, ...session } = begun
      return session
    },
    /**
     * Starts a session for what `find` gives, which no other start can find meanwhile; none for
     * undefined.
     */
    async startFound(find: (tx: Executor) => Promise<FoundRequest | undefined>): Promise<void> {
      if (own.closed) return
      await transact(own, async (tx) => {
        await q.lockStarts(tx, {})
        const request = await find(tx)
        const begun = request && (await begin(tx, options, withinTiers(request)))
        if (begun !== undefined) await request?.note(begun.session.id)
        return begun
      })
    },
    /** Asks a session to stop, whichever instance runs it; false if it does not run. */
    stop: (id: number, actor: Actor) =>
      db.transaction(async (tx) => {
        if ((await q.askToStop(tx, { id })) === undefined) return false
        await noteChange(tx, actor, noteOf('stop', id))
        return true
      }),
    /** Calls back whenever a session began or ended on any instance. */
    onChange: (callback: () => void) => void callbacks.add(callback),
    /** Stops the session that this process runs, with its processes. */
    async close() {
      own.closed = true
      const stopped = leases.stop()
      // A session that has just escalated has a successor.
      while (own.newest !== undefined && !own.newest.isOver()) await own.newest.stop()
      await stopped
    },
  }
}

/** The line of a change in the audit. */
function noteOf(verb: string, id: number): ChangeNote {
  return { service: 'ops', action: `session ${verb}`, subject: `session ${id}` }
}

/**
 * Runs what the transaction begins. If its acknowledgement is lost, the row may stand, as an
 * orphan.
 */
async function transact(own: OwnState, work: (tx: Executor) => ReturnType<typeof begin>) {
  const { options } = own
  own.beginning++
  try {
    const begun = await options.db.transaction(work)
    if (begun === undefined) return undefined
    const { session, runner } = begun
    const config = options.config.current
    const end: SupervisorOptions['finish'] = (...ended) => finish(own, ...ended)
    own.newest = supervise({ ...options, config, finish: end }, runner, session)
    if (own.closed) void own.newest.stop()
    return session
  } finally {
    own.beginning--
  }
}

/** The session with the runner whose model its row shows; undefined if it may not begin. */
async function begin(
  tx: Executor,
  options: SessionsOptions,
  { tier, trigger, prompt, alert, actor }: StartRequest,
  parent_session_id: number | null = null,
) {
  const { clock, config, holder, machine, redact } = options
  const runner = options.runner()
  await q.lockStarts(tx, {})
  if (BY_ITSELF.includes(trigger) && (await holdPause(tx)).investigations.paused) return undefined
  const session = await q.startSession(tx, {
    tier,
    model: runner.modelOf(config.current, tier),
    trigger,
    prompt_text: prompt === null ? null : redact(prompt),
    now: clock.now(),
    parent_session_id,
    alert: alert ?? null,
    holder,
    machine,
  })
  if (session === undefined) return undefined
  if (actor !== undefined) await noteChange(tx, actor, noteOf('start', session.id))
  if (alert !== undefined) await q.noteSession(tx, { id: alert })
  return { session, runner }
}

/**
 * Ends a session. If it has escalated, the next tier starts in the same transaction: no other
 * start comes between them. If it ends with the server, its alert is read again.
 */
async function finish(
  own: OwnState,
  { id, tier }: Session,
  ending: Ending,
  cause: Cause | undefined,
) {
  const { options } = own
  const { clock, holder, redact } = options
  const now = clock.now()
  await transact(own, async (tx) => {
    const finished = await q.finishSession(tx, { id, holder, now, ...ending })
    if (finished === undefined || cause === undefined) return undefined
    if (endsWithServer(own, cause)) await giveBack(tx, id)
    if (cause.status !== 'escalated') return undefined
    const { reason, findings, prompt } = cause.next
    const higher = tier + 1
    const obstacle = own.closed
      ? `the server stopped before tier ${higher} began`
      : pauseProblem(await holdPause(tx), 'investigations')
    const told =
      obstacle === undefined
        ? ` to tier ${higher}: ${reason}`
        : `, and ${obstacle}: ${reason}\n${findings}`
    const message = redact(`Session ${id} escalated${told}`)
    const level = obstacle === undefined ? 'info' : 'warning'
    await addEvent(tx, { session: id, level, service: null, message, now })
    if (obstacle !== undefined) return undefined
    return begin(tx, options, { tier: higher, trigger: 'escalation', prompt }, id)
  })
}

/** What the chain of a session looked into starts another one: its checks, or its alert. */
async function giveBack(tx: Executor, session: number): Promise<void> {
  const { checks } = await q.forgetSession(tx, { session })
  if (checks > 0) return
  const problem = `its session ${session} ended with the server, so it is read again`
  await q.reopenAlert(tx, { session, problem })
}

function endsWithServer(own: OwnState, cause: Cause): boolean {
  if (cause.status === 'stopped') return cause.by === 'server'
  return cause.status === 'escalated' && own.closed
}
