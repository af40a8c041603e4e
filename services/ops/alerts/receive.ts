import type { Database } from '../../../db/client.ts'
import {
  adoptAlert,
  listUnread,
  noteAlert,
  saveAlert,
  type Delivery,
  type Reader,
} from '../../../db/ops/alerts.ts'
import { addBriefCost, freeBrief } from '../../../db/ops/briefs.ts'
import type { UnreadAlert } from '../../../db/ops/rows.ts'
import { sessionQueries } from '../../../db/ops/sessions.ts'
import type { Clock } from '../../../kernel/time.ts'
import { messageOf, type Log } from '../../../kernel/log.ts'
import { repeat } from '../../../kernel/repeat.ts'
import { isAlive } from '../processes/proc.ts'
import type { RandomBytes } from '../../../kernel/token-hash.ts'
import type { Redaction } from '../redact.ts'
import { spentProblem, spentToday } from '../runners/budget.ts'
import type { Sessions } from '../sessions/sessions.ts'
import { openBriefTurns, type Deadline } from './brief-turn.ts'
import { identify } from './fingerprint.ts'
import { readPayload } from './payload.ts'
import { BRIEF_MS, synthesize, type SynthesisConfig } from './synthesis.ts'

/** What the alert webhook works with; the key and the model are looked up for every delivery. */
export interface AlertsOptions {
  readonly db: Database
  readonly clock: Clock
  readonly log: Log
  readonly redact: Redaction
  readonly sessions: Pick<Sessions, 'start'>
  readonly random: RandomBytes
  /** This process. */
  readonly reader: Reader
  readonly synthesis: () => Promise<SynthesisConfig>
}

/** What came of a delivery that was kept. */
export type AlertOutcome =
  | { readonly kind: 'triggered'; readonly session: number; readonly tier: number }
  /** A session runs, or ran meanwhile: it was kept, and nothing more comes of it. */
  | { readonly kind: 'acknowledged' }
  /** There is no brief: in words for the sender, and for the operator. */
  | { readonly kind: 'failed'; readonly problem: string; readonly detail: string }
  /** The server stops; a session that had just begun is stopped with it. */
  | { readonly kind: 'stopping'; readonly session: number | null }

/** The alert webhook. */
export interface Alerts {
  /**
   * Keeps a delivery and starts a session of its brief, unless one runs (decisions.md section 5, Webhook).
   * What an earlier delivery of the same alert came to makes no difference.
   */
  receive(bytes: Uint8Array, at: Date, gone: AbortSignal): Promise<AlertOutcome>
  /** Reads again what a process was reading when it was killed. */
  readLeft(): Promise<void>
  /** Gives up what is being read: its senders are told to try again. */
  close(): Promise<void>
}

/** What is read: a delivery, and the newest session before it. */
interface Reading {
  readonly text: string
  readonly tier: number
  readonly newest: number
}

/** A reading takes less: one that began earlier was given up by its process. */
const LEFT_MS = 30_000
const LOOK_MS = 10_000
/** With less time left no model is asked: a call that is given up costs as much as one that gives a brief. */
const MIN_BRIEF_MS = 1_000
/** Deliveries that are looked at, and perhaps read, at one time: each may have 1 MiB. */
const UNREAD_MOST = 20
const STOPPED = 'the server stopped while it was read, and its sender was told to try again'
const HUNG_UP = 'its sender hung up before it was answered'
const OTHERS = failed('other alerts were being read, and no time was left for this one')

/** Whether a body is empty or has nothing but white space. */
export function isBlank(bytes: Uint8Array): boolean {
  return new TextDecoder().decode(bytes).trim() === ''
}

export function openAlerts(options: AlertsOptions): Alerts {
  const { db, clock, log, redact, sessions, random, reader } = options
  const inTurn = openBriefTurns(options)
  const stopping = new AbortController()

  async function receive(bytes: Uint8Array, at: Date, gone: AbortSignal): Promise<AlertOutcome> {
    const payload = readPayload(bytes)
    // A sender may repeat its key in the body; neither the list nor the model is to know it.
    const text = redact(payload.text)
    const { tier } = payload
    const { newest, running } = await sessionQueries.readSessionState(db, {})
    // A session that runs while the server stops is being stopped.
    const isBusy = running && !stopping.signal.aborted
    const outcome = isBusy ? 'acknowledged' : 'received'
    const alert = { ...identify(payload, redact), payload: text, tier, outcome, at } as const
    const delivery = await saveAlert(db, alert, reader)
    if (isBusy) return { kind: 'acknowledged' }
    const result = await whileWatched(gone, delivery, () => read({ text, tier, newest }))
    await note(delivery, result, gone.aborted)
    return result
  }

  /** Tells in the log when the sender hangs up. Afterwards the signal only says that it has its answer. */
  async function whileWatched<T>(
    gone: AbortSignal,
    { id }: Delivery,
    work: () => Promise<T>,
  ): Promise<T> {
    const tell = (): void => log.warn('alert sender hung up', { alert: id })
    gone.addEventListener('abort', tell, { once: true })
    try {
      return await work()
    } finally {
      gone.removeEventListener('abort', tell)
    }
  }

  async function read(reading: Reading): Promise<AlertOutcome> {
    const signal = AbortSignal.any([stopping.signal, AbortSignal.timeout(BRIEF_MS)])
    const deadline = { signal, at: new Date(clock.now().getTime() + BRIEF_MS) }
    const result = await inTurn(deadline, () => startSession(reading, deadline))
    if (stopping.signal.aborted) {
      return { kind: 'stopping', session: result?.kind === 'triggered' ? result.session : null }
    }
    return result ?? OTHERS
  }

  async function startSession(reading: Reading, deadline: Deadline): Promise<AlertOutcome> {
    const { newest, running } = await sessionQueries.readSessionState(db, {})
    if (running || newest > reading.newest) return { kind: 'acknowledged' }
    const config = await options.synthesis()
    const spent = await problemOfBudget(config)
    if (spent !== undefined) return failed(spent)
    const limit = {
      signal: deadline.signal,
      left: () => deadline.at.getTime() - clock.now().getTime(),
    }
    if (limit.left() < MIN_BRIEF_MS) return OTHERS
    const synthesis = await synthesize(reading.text, config, { random, redact }, limit)
    if (synthesis.cost > 0) await addBriefCost(db, clock.now(), synthesis.cost)
    if ('problem' in synthesis) return failed(synthesis.problem, synthesis.detail)
    const { brief: prompt } = synthesis
    const session = await sessions.start({ tier: reading.tier, trigger: 'alert', prompt })
    if (session === undefined) return { kind: 'acknowledged' }
    return { kind: 'triggered', session: session.id, tier: session.tier }
  }

  /** Why no model may be asked any more on this day; undefined while it may. */
  async function problemOfBudget(config: SynthesisConfig): Promise<string | undefined> {
    const { dayBudget: day, model, price, endpoint } = config
    if (day === undefined || endpoint === undefined) return undefined
    if (price === undefined) {
      log.warn('briefs of alerts not counted: their model has no price', { model })
    }
    const spent = { chain: 0, day: await spentToday(db, clock.now()) }
    return spentProblem({ session: undefined, day }, spent, 0)
  }

  async function note(delivery: Delivery, result: AlertOutcome, hungUp: boolean): Promise<void> {
    const { kind } = result
    const problems = [
      ...(kind === 'failed' ? [result.detail] : []),
      ...(kind === 'stopping' ? [STOPPED] : []),
      ...(hungUp ? [HUNG_UP] : []),
    ]
    const problem = problems.length === 0 ? null : problems.join('; ')
    if (kind === 'failed') log.warn('alert not synthesized', { alert: delivery.id, problem })
    const session = 'session' in result ? result.session : null
    await noteAlert(db, delivery, kind === 'stopping' ? 'failed' : kind, { problem, session })
  }

  async function readLeft(): Promise<void> {
    const unread = await listUnread(db, UNREAD_MOST)
    const { newest } = await sessionQueries.readSessionState(db, {})
    await Promise.all(
      unread.map(async (alert) => {
        const isDead = alert.machine === reader.machine && !isAlive(alert.holder)
        const silence = clock.now().getTime() - alert.reading_since.getTime()
        if (isDead || silence > LEFT_MS) await readInstead(alert, isDead, newest)
      }),
    )
  }

  async function readInstead(alert: UnreadAlert, isDead: boolean, newest: number): Promise<void> {
    // Otherwise the turn of the dead process would last until its deadline.
    if (isDead) await freeBrief(db, alert)
    const adopted = await adoptAlert(db, alert, reader, clock.now())
    if (adopted === undefined) return
    log.info('alert is read again', { alert: alert.id })
    const result = await read({ text: adopted.payload, tier: adopted.tier, newest })
    // No sender waits for this answer: the next start reads it.
    if (result.kind !== 'stopping') await note(adopted, result, false)
  }

  const looks = repeat(clock, LOOK_MS, readLeft, {
    fails: (error) => log.warn('interrupted alerts not read', { error: messageOf(error) }),
    works: () => log.info('interrupted alerts are read again'),
  })
  return {
    receive,
    readLeft: looks.now,
    close() {
      stopping.abort()
      return looks.stop()
    },
  }
}

function failed(problem: string, detail = problem): AlertOutcome {
  return { kind: 'failed', problem, detail }
}
