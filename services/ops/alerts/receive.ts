import { alertQueries as q, type AlertInProgress, type Delivery } from '../../../db/ops/alerts.ts'
import { sessionQueries } from '../../../db/ops/sessions.ts'
import { messageOf } from '../../../kernel/log.ts'
import { repeat } from '../../../kernel/repeat.ts'
import type { RandomBytes } from '../../../kernel/tokens.ts'
import { isAlive } from '../processes/proc.ts'
import type { Redaction } from '../redact.ts'
import { spentProblem, spentToday } from '../runners/budget.ts'
import type { Sessions } from '../sessions/sessions.ts'
import {
  BRIEF_MS,
  synthesize,
  type SynthesisConfig,
  openBriefLock,
  type BriefLockOptions,
  type Deadline,
} from './brief.ts'
import { identify, readPayload, type Payload } from './payload.ts'

/** What the alert webhook works with. */
interface AlertsOptions extends BriefLockOptions {
  readonly redact: Redaction
  readonly sessions: Pick<Sessions, 'start'>
  readonly random: RandomBytes
  /** The model's configuration, read for every delivery. */
  readonly synthesis: () => Promise<SynthesisConfig>
}

/** The result of a delivery. The alert is kept in every case. */
export type DeliveryResult =
  | { readonly kind: 'triggered'; readonly session: number; readonly tier: number }
  /** A session runs, or ran meanwhile. */
  | { readonly kind: 'acknowledged' }
  /** There is no brief: `problem` for the sender, `detail` for the operator. */
  | { readonly kind: 'failed'; readonly problem: string; readonly detail: string }
  /** The server stops; a session that had just begun is stopped with it. */
  | { readonly kind: 'stopping'; readonly session: number | null }

/** The alert webhook. */
export type Alerts = ReturnType<typeof openAlerts>

/** A delivery in progress, and the newest session before it. */
type Work = Pick<Payload, 'text' | 'tier'> & { readonly newest: number }

/** A delivery takes less: one in progress for longer was interrupted. */
const INTERRUPTED_MS = 30_000
const RESUME_MS = 10_000
/**
 * With less time left the model is not asked: a request that is given up costs as much as a brief.
 */
const MIN_BRIEF_MS = 1_000
/** Each may have 1 MiB. */
const MAX_RESUMED = 20
const STOPPED = 'the server stopped while it was read, and its sender was told to try again'
const HUNG_UP = 'its sender hung up before it was answered'
const NO_TIME_LEFT = failed('other alerts were being read, and no time was left for this one')

/** Whether a body is empty or white space only. */
export function isBlank(bytes: Uint8Array): boolean {
  return new TextDecoder().decode(bytes).trim() === ''
}

export function openAlerts(options: AlertsOptions) {
  const { db, clock, log, redact, sessions, random, reader } = options
  const withLock = openBriefLock(options)
  const stopping = new AbortController()

  /**
   * Keeps a delivery, and starts a session with a brief of it unless one runs (decisions.md section
   * 5, Webhook). Earlier deliveries of the same alert make no difference. `gone` aborts when the
   * sender hangs up.
   */
  async function receive(bytes: Uint8Array, now: Date, gone: AbortSignal): Promise<DeliveryResult> {
    const payload = readPayload(bytes)
    // A sender may repeat its key in the body: neither the list nor the model may see it.
    const text = redact(payload.text)
    const { tier } = payload
    const { newest, running } = await sessionQueries.readSessionState(db, {})
    // While the server stops, a running session is about to end, and no reason to acknowledge.
    const isBusy = running && !stopping.signal.aborted
    const outcome = isBusy ? 'acknowledged' : 'received'
    const alert = { ...identify(payload, redact), payload: text, tier, outcome, now }
    const delivery = await q.saveAlert(db, { ...alert, ...reader })
    if (isBusy) return { kind: 'acknowledged' }
    const warn = (): void => log.warn('alert sender hung up', { alert: delivery.id })
    gone.addEventListener('abort', warn, { once: true })
    const result = await process({ text, tier, newest }).finally(() =>
      // After this the signal only means that the reply was sent.
      gone.removeEventListener('abort', warn),
    )
    await save(delivery, result, gone.aborted)
    return result
  }

  async function process(work: Work): Promise<DeliveryResult> {
    const signal = AbortSignal.any([stopping.signal, AbortSignal.timeout(BRIEF_MS)])
    const deadline = { signal, at: new Date(clock.now().getTime() + BRIEF_MS) }
    const result = await withLock(deadline, () => startSession(work, deadline))
    if (stopping.signal.aborted) {
      return { kind: 'stopping', session: result?.kind === 'triggered' ? result.session : null }
    }
    return result ?? NO_TIME_LEFT
  }

  async function startSession(work: Work, deadline: Deadline): Promise<DeliveryResult> {
    const { newest, running } = await sessionQueries.readSessionState(db, {})
    if (running || newest > work.newest) return { kind: 'acknowledged' }
    const config = await options.synthesis()
    const spent = await spentBudget(config)
    if (spent !== undefined) return failed(spent)
    const left = () => deadline.at.getTime() - clock.now().getTime()
    if (left() < MIN_BRIEF_MS) return NO_TIME_LEFT
    const limit = { signal: deadline.signal, left }
    const synthesis = await synthesize(work.text, config, { random, redact }, limit)
    const { cost: cost_usd } = synthesis
    if (cost_usd > 0) await q.addBriefCost(db, { now: clock.now(), cost_usd })
    if ('problem' in synthesis) return failed(synthesis.problem, synthesis.detail)
    const { brief: prompt } = synthesis
    const session = await sessions.start({ tier: work.tier, trigger: 'alert', prompt })
    if (session === undefined) return { kind: 'acknowledged' }
    return { kind: 'triggered', session: session.id, tier: session.tier }
  }

  /** Says that the budget of the day is spent; undefined while some is left. */
  async function spentBudget(config: SynthesisConfig): Promise<string | undefined> {
    const { dayBudget: day, model, price, endpoint } = config
    if (day === undefined || endpoint === undefined) return undefined
    if (price === undefined) {
      log.warn('briefs of alerts not counted: their model has no price', { model })
    }
    const spent = { chain: 0, day: await spentToday(db, clock.now()) }
    return spentProblem({ session: undefined, day }, spent, 0)
  }

  async function save(delivery: Delivery, result: DeliveryResult, hungUp: boolean): Promise<void> {
    const { kind } = result
    const problems = [
      ...(kind === 'failed' ? [result.detail] : []),
      ...(kind === 'stopping' ? [STOPPED] : []),
      ...(hungUp ? [HUNG_UP] : []),
    ]
    const problem = problems.join('; ') || null
    if (kind === 'failed') log.warn('alert not synthesized', { alert: delivery.id, problem })
    const outcome = kind === 'stopping' ? 'failed' : kind
    const session = 'session' in result ? result.session : null
    await q.noteAlert(db, { ...delivery, outcome, problem, session })
  }

  /** Resumes deliveries whose process was killed. */
  async function resume(): Promise<void> {
    const alerts = await q.listAlertsInProgress(db, { limit: MAX_RESUMED })
    const { newest } = await sessionQueries.readSessionState(db, {})
    await Promise.all(
      alerts.map(async (alert) => {
        const isDead = alert.machine === reader.machine && !isAlive(alert.holder)
        const silence = clock.now().getTime() - alert.reading_since.getTime()
        if (isDead || silence > INTERRUPTED_MS) await adopt(alert, isDead, newest)
      }),
    )
  }

  async function adopt(alert: AlertInProgress, isDead: boolean, newest: number): Promise<void> {
    // Otherwise the lock of the dead process would last until its deadline.
    if (isDead) await q.freeBriefLock(db, alert)
    const adopted = await q.adoptAlert(db, { ...alert, ...reader, now: clock.now() })
    if (adopted === undefined) return
    log.info('alert is read again', { alert: alert.id })
    const result = await process({ text: adopted.payload, tier: adopted.tier, newest })
    // No sender waits for this result: the next start resumes the alert.
    if (result.kind !== 'stopping') await save(adopted, result, false)
  }

  const resuming = repeat(clock, RESUME_MS, resume, {
    fails: (error) => log.warn('interrupted alerts not read', { error: messageOf(error) }),
    works: () => log.info('interrupted alerts are read again'),
  })
  return {
    receive,
    resume: resuming.now,
    /** Interrupts deliveries in progress: their senders are told to try again. */
    close() {
      stopping.abort()
      return resuming.stop()
    },
  }
}

function failed(problem: string, detail = problem): DeliveryResult {
  return { kind: 'failed', problem, detail }
}
