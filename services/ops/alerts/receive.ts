import { alertQueries as q, type AlertInProgress, type Delivery } from '../../../db/ops/alerts.ts'
import type { Executor } from '../../../db/client.ts'
import { sessionQueries } from '../../../db/ops/sessions.ts'
import { repeat, reportsTo } from '../../../kernel/repeat.ts'
import { isAlive } from '../../../kernel/processes/proc.ts'
import { addEvent } from '../events.ts'
import { spentProblem, spentToday } from '../runners/budget.ts'
import type { Sessions } from '../sessions/sessions.ts'
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
import { readAlert, readPayload, type Payload } from './payload.ts'

/** What the alert webhook works with. */
interface AlertsOptions extends BriefOptions {
  sessions: Pick<Sessions, 'start'>
  /** The model's configuration, read for every delivery. */
  synthesis: () => Promise<SynthesisConfig>
}

/** The result of a delivery. The alert is kept in every case. */
export type DeliveryResult =
  | Triggered
  /** A session runs, or ran meanwhile. */
  | { kind: 'acknowledged' }
  /** There is no brief, and no session. */
  | NoBrief
  /** The server stops. A session that had just begun is stopped with it, and its alert reopened. */
  | { kind: 'stopping' }

interface Triggered {
  kind: 'triggered'
  session: number
  tier: number
  /** What people must know of its brief. */
  problem: string | undefined
  /** Why its session got the alert itself; undefined if it has a brief. */
  noBrief: NoBrief | undefined
}

/** A delivery in progress, and the newest session before it. */
type Work = Pick<Payload, 'text' | 'tier'> & { alert: number; newest: number }

/** A delivery that is kept. */
interface KeptDelivery extends Delivery {
  title: string
}

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
const ITSELF = 'the session got the alert itself'
const NO_TIME_LEFT = failed('other alerts were being read, and no time was left for this one')

/** Whether a body is empty or white space only. */
export function isBlank(bytes: Uint8Array) {
  return new TextDecoder().decode(bytes).trim() === ''
}

/** Opens the alert webhook. */
export function openAlerts(options: AlertsOptions) {
  const { db, clock, log, redact, reader } = options
  const stopping = new AbortController()
  const process = openReading(options, stopping.signal)

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
    if (adopted === undefined) return
    const { id, payload: text, tier } = adopted
    const result = await process({ alert: id, text, tier, newest }, beginDeadline())
    // No sender waits for this result: the next start resumes the alert.
    if (result.kind !== 'stopping') await save(options, adopted, result, false)
  }

  const reports = reportsTo(
    log,
    'interrupted alerts not read',
    'interrupted alerts are read again',
  )
  const resuming = repeat(clock, RESUME_MS, 'interrupted alerts', resume, reports)
  return {
    /**
     * Keeps a delivery, and starts a session with a brief of it unless one runs (decisions.md
     * section 5, Webhook). Earlier deliveries of the same alert make no difference. `gone` aborts
     * when the sender hangs up.
     */
    async receive(bytes: Uint8Array, now: Date, gone: AbortSignal): Promise<DeliveryResult> {
      const deadline = beginDeadline()
      const payload = readPayload(bytes)
      // A sender may repeat its key in the body: neither the list nor the model may see it.
      const text = redact(payload.text)
      const { newest, running } = await sessionQueries.readSessionState(db, {})
      // While the server stops, a running session is about to end, and no reason to acknowledge.
      const isBusy = running && !stopping.signal.aborted
      const outcome = isBusy ? 'acknowledged' : 'received'
      const alert = { ...readAlert(payload, redact), payload: text, outcome, now }
      const delivery = await q.saveAlert(db, { ...alert, ...reader, tier: payload.tier })
      if (isBusy) return { kind: 'acknowledged' }
      const warn = () => log.warn('alert sender hung up', { alert: delivery.id })
      gone.addEventListener('abort', warn, { once: true })
      const work = { alert: delivery.id, text, tier: payload.tier, newest }
      const result = await process(work, deadline).finally(() =>
        // After this the signal only means that the reply was sent.
        gone.removeEventListener('abort', warn),
      )
      await save(options, { ...delivery, title: alert.title }, result, gone.aborted)
      return result
    },
    resume: resuming.now,
    /** Interrupts deliveries in progress: the replies ask their senders to try again. */
    close() {
      stopping.abort()
      return resuming.stop()
    },
  }
}

/** Reads one delivery after the other, and starts a session if it may. */
function openReading(options: AlertsOptions, stopping: AbortSignal) {
  const { db, clock, sessions, synthesis } = options
  const withLock = openBriefLock(options)

  /** Whether a session has begun since the delivery. */
  async function hasSession(work: Work): Promise<boolean> {
    const { newest, running } = await sessionQueries.readSessionState(db, {})
    return running || newest > work.newest
  }

  async function begin(
    work: Work,
    prompt: string,
    about: Pick<Triggered, 'problem' | 'noBrief'>,
  ): Promise<DeliveryResult> {
    const { alert, tier } = work
    if (await hasSession(work)) return { kind: 'acknowledged' }
    const started = await sessions.start({ tier, trigger: 'alert', prompt, alert })
    if (started === undefined) return { kind: 'acknowledged' }
    return { kind: 'triggered', session: started.id, tier: started.tier, ...about }
  }

  /** What becomes of an alert without a brief. */
  async function withoutBrief(work: Work, noBrief: NoBrief): Promise<DeliveryResult> {
    const { fallback } = await synthesis()
    if (!fallback || stopping.aborted) return noBrief
    const problem = `${noBrief.detail}: ${ITSELF}`
    return begin(work, beginningOf(work.text), { problem, noBrief })
  }

  async function read(work: Work, deadline: Deadline): Promise<DeliveryResult> {
    if (await hasSession(work)) return { kind: 'acknowledged' }
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

  return async (work: Work, deadline: Deadline): Promise<DeliveryResult> => {
    const result =
      (await withLock(deadline, () => read(work, deadline))) ??
      (await withoutBrief(work, NO_TIME_LEFT))
    return stopping.aborted ? { kind: 'stopping' } : result
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
  result: DeliveryResult,
  hungUp: boolean,
) {
  const { kind } = result
  const problem = [reasonOf(result), hungUp && HUNG_UP].filter(Boolean).join('; ') || null
  const noBrief = noBriefOf(result)
  if (noBrief !== undefined) log.warn('alert not synthesized', { alert: delivery.id, problem })
  const outcome = kind === 'stopping' ? 'failed' : kind
  const session = 'session' in result ? result.session : null
  await db.transaction(async (tx) => {
    await q.noteAlert(tx, { ...delivery, ...reader, outcome, problem })
    if (noBrief !== undefined) await tell(tx, delivery, noBrief, session, clock.now())
  })
}

function noBriefOf(result: DeliveryResult): NoBrief | undefined {
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
function reasonOf(result: DeliveryResult): string | undefined {
  if (result.kind === 'failed') return result.detail
  if (result.kind === 'stopping') return STOPPED
  return result.kind === 'triggered' ? result.problem : undefined
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
