import {
  alertQueries as q,
  type AlertInProgress,
  type TakenAlert,
} from '../../../../db/ops/alerts/alerts.ts'
import type { Executor } from '../../../../db/client.ts'
import { sessionQueries } from '../../../../db/ops/agent/sessions.ts'
import { repeat, reportsTo } from '../../../../kernel/repeat.ts'
import { isAlive } from '../../../../kernel/processes/proc.ts'
import { addEvent } from '../../events.ts'
import { pauseProblem, readPause } from '../../agent/pause.ts'
import { spentProblem, spentToday } from '../../agent/runners/budget.ts'
import type { Sessions } from '../../agent/sessions/sessions.ts'
import {
  beginningOf,
  BRIEF_MS,
  synthesize,
  type SynthesisConfig,
  openBriefLock,
  type BriefOptions,
  type Deadline,
  type NoBrief,
} from './brief.ts'
import { keepDelivery } from './keep.ts'
import type { AlertRules } from './outcome.ts'
import { readAlert, readPayload, type Payload } from './payload.ts'
import { startQueue } from './queue.ts'

/** What the alert webhook works with. */
export interface AlertsOptions extends BriefOptions {
  sessions: Pick<Sessions, 'start' | 'onChange'>
  /** The model's configuration, read for every delivery. */
  synthesis: () => Promise<SynthesisConfig>
  /** The highest tier that a sender may ask for, as configured now. */
  alertMaxTier: () => number
  alertRules: () => AlertRules
}

/** The result of a delivery. The alert is kept in every case. */
export type DeliveryResult =
  | Triggered
  /**
   * No session starts now: one runs, or ran meanwhile; or `problem` says why none may begin.
   * `detail` says what becomes of a delivery that settings or a silence decide on.
   */
  | { kind: 'acknowledged'; detail: string | undefined; problem?: string | undefined }
  /** There is no brief, and no session. */
  | NoBrief
  /** The server stops. A session that had just begun is stopped with it, and its alert reopened. */
  | { kind: 'stopping' }

/**
 * What reading an alert gives. One that waits is read again after the session that runs; one that
 * was resolved meanwhile is over.
 */
type ReadResult = Exclude<DeliveryResult, { kind: 'acknowledged' }> | Later | { kind: 'resolved' }
type Later = { kind: 'acknowledged' | 'waiting'; problem?: string | undefined }

interface Triggered {
  kind: 'triggered'
  session: number
  tier: number
  /** What people must know of its brief. */
  problem: string | undefined
  /** Why its session got the alert itself; undefined if it has a brief. */
  noBrief: NoBrief | undefined
}

/** An alert that is read, and the newest session before it. */
interface Work extends Pick<Payload, 'text' | 'tier'> {
  alert: number
  newest: number
  /** It has waited, and no sender waits for its result. */
  isQueued: boolean
  /** It is over: without a model nothing is left to do. */
  isResolved: boolean
}

/** A delivery that is kept. */
type KeptDelivery = Pick<TakenAlert, 'id' | 'reading' | 'title'>

/** A delivery takes less: one in progress for longer was interrupted. */
const INTERRUPTED_MS = 30_000
const RESUME_MS = 10_000
/**
 * With less time left the model is not asked: a request that is given up costs as much as a brief.
 */
const MIN_BRIEF_MS = 1_000
/** Each may have 1 MiB. */
const MAX_RESUMED = 20
const STOPPED = 'the server stopped while it was read, and its sender was asked to send it again'
const HUNG_UP = 'its sender hung up before it was answered'
const BEGUN = 'another session has just begun'
const PAUSED = 'investigations are paused'
const ITSELF = 'the session got the alert itself'
const NO_TIME_LEFT = failed('other alerts were being read, and no time was left for this one')

/** Whether a body is empty or white space only. */
export function isBlank(bytes: Uint8Array) {
  return new TextDecoder().decode(bytes).trim() === ''
}

/** Opens the alert webhook. */
export function openAlerts(options: AlertsOptions) {
  const { db, clock, log, redact } = options
  const stopping = new AbortController()
  const readWork = openReading(options, stopping.signal)

  /** Begins the time that a delivery has. */
  function beginDeadline(): Deadline {
    const signal = AbortSignal.any([stopping.signal, AbortSignal.timeout(BRIEF_MS)])
    const until = clock.elapsed() + BRIEF_MS
    return { signal, left: () => until - clock.elapsed() }
  }

  /** Resumes deliveries whose process was killed. */
  async function resume() {
    const alerts = await q.listAlertsInProgress(db, { limit: MAX_RESUMED })
    const { newest } = await sessionQueries.readSessionState(db, {})
    await Promise.all(alerts.map((alert) => readAgain(alert, newest)))
  }

  async function readAgain(alert: AlertInProgress, newest: number) {
    const adopted = await adopt(options, alert)
    if (adopted !== undefined) await readTaken(adopted, newest)
  }

  /** Reads an alert whose sender waits for no result: after a stop the next start resumes it. */
  async function readTaken(taken: TakenAlert, newest: number) {
    const { id, payload: text, tier, waiting_since } = taken
    const isQueued = waiting_since !== null
    const work = { alert: id, text, tier, newest, isQueued, isResolved: false }
    const result = await readWork(work, beginDeadline())
    if (result.kind !== 'stopping') await save(options, taken, result, false)
  }

  const reports = reportsTo(
    log,
    'interrupted alerts not read',
    'interrupted alerts are read again',
  )
  const resuming = repeat(clock, RESUME_MS, 'interrupted alerts', resume, reports)
  const queue = startQueue(options, readTaken)
  return {
    /**
     * Keeps a delivery, and starts a session with a brief of it (decisions.md section 5, Webhook).
     * None starts while another runs, or where the settings or a silence say so. `gone` aborts when
     * the sender hangs up.
     */
    async receive(bytes: Uint8Array, now: Date, gone: AbortSignal): Promise<DeliveryResult> {
      const deadline = beginDeadline()
      const payload = readPayload(bytes)
      // A sender may repeat its key in the body: neither the list nor the model may see it.
      const text = redact(payload.text)
      const read = readAlert(payload, redact)
      const given = { read, text, tier: payload.tier, isStopping: stopping.signal.aborted }
      const { decision, newest, ...delivery } = await keepDelivery(options, given, now)
      if (decision.kind !== 'read') return { kind: 'acknowledged', detail: decision.detail }
      const warn = () => log.warn('alert sender hung up', { alert: delivery.id })
      gone.addEventListener('abort', warn, { once: true })
      const isResolved = read.status === 'resolved'
      const about = { isQueued: false, isResolved }
      const work = { alert: delivery.id, text, tier: payload.tier, newest, ...about }
      const result = await readWork(work, deadline).finally(() =>
        // After this the signal only means that the reply was sent.
        gone.removeEventListener('abort', warn),
      )
      await save(options, { ...delivery, title: read.title }, result, gone.aborted)
      return answerOf(result)
    },
    /** Reads what a stop has left: alerts that were being read, and then one that waits. */
    async resume() {
      await resuming.now()
      await queue.now()
    },
    /** Interrupts deliveries in progress: the replies ask their senders to try again. */
    async close() {
      stopping.abort()
      await Promise.all([resuming.stop(), queue.stop()])
    },
  }
}

function answerOf(result: ReadResult): DeliveryResult {
  const kind = 'acknowledged'
  switch (result.kind) {
    case 'acknowledged':
      return { kind, detail: undefined, problem: result.problem }
    case 'waiting':
      return { kind, detail: `queued: ${result.problem === undefined ? BEGUN : PAUSED}` }
    case 'resolved':
      return { kind, detail: 'resolved: nothing starts' }
    default:
      return result
  }
}

/** Reads one delivery after the other, and starts a session if it may. */
function openReading(options: AlertsOptions, stopping: AbortSignal) {
  const { db, clock, sessions, synthesis, alertRules } = options
  const withLock = openBriefLock(options)

  /** What becomes of an alert if no session may begin: they are paused, or one has begun. */
  async function obstacleTo(work: Work): Promise<Later | undefined> {
    const problem = pauseProblem(await readPause(db), 'investigations')
    if (problem !== undefined) return later(work, problem)
    const { newest, running } = await sessionQueries.readSessionState(db, {})
    return running || newest > work.newest ? later(work) : undefined
  }

  function later({ isQueued }: Work, problem?: string): Later {
    return { kind: isQueued || alertRules().queue ? 'waiting' : 'acknowledged', problem }
  }

  async function begin(
    work: Work,
    prompt: string,
    about: Pick<Triggered, 'problem' | 'noBrief'>,
  ): Promise<ReadResult> {
    const { alert } = work
    const tier = Math.min(work.tier, options.alertMaxTier())
    const obstacle = await obstacleTo(work)
    if (obstacle !== undefined) return obstacle
    const found = await q.findOutcome(db, { id: alert })
    if (found?.outcome === 'resolved') return { kind: 'resolved' }
    const started = await sessions.start({ tier, trigger: 'alert', prompt, alert })
    if (started === undefined) return later(work)
    return { kind: 'triggered', session: started.id, tier: started.tier, ...about }
  }

  /** What becomes of an alert without a brief. */
  async function withoutBrief(work: Work, noBrief: NoBrief): Promise<ReadResult> {
    if (noBrief === NO_TIME_LEFT && work.isQueued) return { kind: 'waiting' }
    const { fallback } = await synthesis()
    if (stopping.aborted) return noBrief
    if (!fallback) return work.isResolved ? { kind: 'resolved' } : noBrief
    const problem = `${noBrief.detail}: ${ITSELF}`
    return begin(work, beginningOf(work.text), { problem, noBrief })
  }

  async function read(work: Work, deadline: Deadline): Promise<ReadResult> {
    const obstacle = await obstacleTo(work)
    if (obstacle !== undefined) return obstacle
    const config = await synthesis()
    const spent = await spentBudget(options, config)
    // A session would be refused for the same reason.
    if (spent !== undefined) return failed(spent)
    if (deadline.left() < MIN_BRIEF_MS) return withoutBrief(work, NO_TIME_LEFT)
    const { cost, ...brief } = await synthesize(work.text, config, options, deadline)
    if (cost > 0) await q.addBriefCost(db, { now: clock.now(), cost_usd: cost })
    if (brief.kind === 'failed') return withoutBrief(work, brief)
    return begin(work, brief.prompt, { problem: brief.problem, noBrief: undefined })
  }

  return async (work: Work, deadline: Deadline): Promise<ReadResult> => {
    const result =
      (await withLock(deadline, () => read(work, deadline))) ??
      (await withoutBrief(work, NO_TIME_LEFT))
    if (!stopping.aborted) return result
    // Another instance may go on with one that waits.
    return { kind: work.isQueued ? 'waiting' : 'stopping' }
  }
}

/** Says that the budget of the day is spent; undefined while some is left. */
async function spentBudget({ db, clock, log }: AlertsOptions, config: SynthesisConfig) {
  const { dayBudget: day, model, price, endpoint } = config
  if (day === undefined || endpoint === undefined) return undefined
  if (price === undefined) {
    log.warn('briefs of alerts not counted: their model has no price', { model })
  }
  const spent = { chain: 0, day: await spentToday(db, clock.now()) }
  return spentProblem({ session: undefined, day }, spent, 0)
}

async function save(
  { db, clock, log, reader }: AlertsOptions,
  delivery: KeptDelivery,
  result: ReadResult,
  hungUp: boolean,
) {
  const { kind } = result
  const problem = [reasonOf(result), hungUp && HUNG_UP].filter(Boolean).join('; ') || null
  const noBrief = noBriefOf(result)
  if (noBrief !== undefined) log.warn('alert not synthesized', { alert: delivery.id, problem })
  const outcome = kind === 'stopping' ? 'failed' : kind
  const session = 'session' in result ? result.session : null
  await db.transaction(async (tx) => {
    const now = clock.now()
    await q.noteAlert(tx, { ...delivery, ...reader, outcome, problem, now })
    if (noBrief !== undefined) await tell(tx, delivery, noBrief, session, now)
  })
}

function noBriefOf(result: ReadResult): NoBrief | undefined {
  if (result.kind === 'failed') return result
  return result.kind === 'triggered' ? result.noBrief : undefined
}

/**
 * Tells operators of an alert without a brief, once a day however often its sender repeats it.
 * Where no session has begun, the alert itself waits for them.
 */
async function tell(
  tx: Executor,
  { id, title }: KeptDelivery,
  { problem }: NoBrief,
  session: number | null,
  now: Date,
): Promise<void> {
  const what = session === null ? 'no session looks into it' : ITSELF
  // Not the detail: notices leave this machine, and an endpoint may quote a part of its key.
  const message = `Alert ${id} (${title}) has no brief, and ${what}: ${problem}`
  const isDue = (await q.claimTelling(tx, { id, now })) !== undefined
  if (!isDue && session === null) return
  const level = session === null ? 'critical' : 'warning'
  const event = { session, level, service: 'gatehouse', message, now } as const
  await addEvent(tx, event, { notify: isDue, waits: session !== null })
}

/** What people must know of a result. */
function reasonOf(result: ReadResult): string | undefined {
  if (result.kind === 'failed') return result.detail
  if (result.kind === 'stopping') return STOPPED
  return result.kind === 'resolved' ? undefined : result.problem
}

/** Takes an alert over if no process reads it, or its process is dead or silent for too long. */
async function adopt({ db, log, reader }: AlertsOptions, alert: AlertInProgress) {
  const isDead = alert.machine === reader.machine && !isAlive(alert.holder)
  const isFree = alert.holder === '' || isDead
  if (!isFree && alert.reading_ms <= INTERRUPTED_MS) return undefined
  // Otherwise the lock of the dead process would last until its deadline.
  if (isDead) await q.freeBriefLock(db, alert)
  const adopted = await q.adoptAlert(db, { ...alert, ...reader })
  if (adopted !== undefined) log.info('alert is read again', { alert: alert.id })
  return adopted
}

function failed(problem: string): NoBrief {
  return { kind: 'failed', problem, detail: problem }
}
