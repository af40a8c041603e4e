import { backoffMs } from '../../../../kernel/time.ts'
import { post } from '../../../../kernel/net/outbound.ts'
import { targetAnswer, type TargetAnswer } from '../replays/attempt.ts'
import { isDelivered, type ForwardedEvent, type ForwardResult } from './protocol.ts'

/** What came of an attempt. A program has an exit code in place of a status. */
export interface Answer extends TargetAnswer {
  exit_code?: number
}

/** Makes one attempt to deliver an event. Never rejects. */
export type Attempt = (event: ForwardedEvent, body: Buffer) => Promise<Answer>

/** How events are delivered. */
export interface DeliveryOptions {
  attempt: Attempt
  /** How often a failed delivery is repeated. */
  retries: number
  /** Whether the next event follows when the retries are used up; otherwise forwarding ends. */
  skipFailed: boolean
  random: (size: number) => Buffer
}

/** The state of an event after an attempt. */
export interface Delivered {
  event: ForwardedEvent
  result: ForwardResult
  /** Attempts so far, this one included. */
  attempts: number
  /**
   * `left`: the next event follows. `again`: another attempt after `waitMs`. `repeat`: it was
   * settled before and was not sent again. `given-up`: forwarding ends.
   */
  outcome: 'delivered' | 'repeat' | 'left' | 'again' | 'given-up'
  waitMs: number
}

/** Makes one attempt; `body` is undefined for an event that the server can't send. */
export type Deliver = (event: ForwardedEvent, body: Buffer | undefined) => Promise<Delivered>

/** Characters of a detail. */
const MAX_DETAIL = 1_000

/**
 * Delivers events one by one. It outlives connections: if the server did not get a result, it
 * sends the event again, and gets the same result without a second delivery.
 */
export function createDelivery(options: DeliveryOptions): Deliver {
  const { attempt, retries, skipFailed, random } = options
  let settled: ForwardResult | undefined
  let current: number | undefined
  let failures = 0

  function outcomeOf(answer: Answer): Delivered['outcome'] {
    if (isDelivered(answer)) return 'delivered'
    failures++
    if (failures <= retries) return 'again'
    return skipFailed ? 'left' : 'given-up'
  }

  return async function deliver(event, body) {
    const { id } = event
    if (settled?.id === id && event.again !== true) {
      const result = settled
      return { event, result, attempts: failures, outcome: 'repeat', waitMs: 0 }
    }
    if (current !== id) failures = 0
    current = id
    const answer: Answer =
      body === undefined
        ? { status: null, ms: 0, detail: event.refused }
        : await attempt(event, body)
    const attempts = failures + 1
    const outcome = outcomeOf(answer)
    const done = outcome === 'delivered' || outcome === 'left'
    const detail = answer.detail?.slice(0, MAX_DETAIL) ?? null
    const result: ForwardResult = { type: 'result', id, ...answer, detail, done }
    if (done) settled = result
    const waitMs = outcome === 'again' ? backoffMs(failures, random) : 0
    return { event, result, attempts, outcome, waitMs }
  }
}

/** How events are posted to a target. */
interface PostOptions {
  target: URL
  timeoutMs: number
  /** Aborted to end a running delivery. */
  cut: AbortSignal
}

/**
 * Bytes of an answer that are read: a target that still writes must not see a broken connection.
 */
const ANSWER_BYTES = 64 * 1024

/** Header with the event's id: the target may get an event twice and can tell by it. */
const MARKER = 'x-gatehouse-event'

/** Attempts that post an event to a target. */
export function postTo({ target, timeoutMs, cut }: PostOptions): Attempt {
  return async (event, body) => {
    const result = await post({
      url: target,
      headers: { ...event.headers, [MARKER]: String(event.id) },
      body,
      timeoutMs,
      // The user of the command chose the target.
      trusted: true,
      answerBytes: ANSWER_BYTES,
      signal: cut,
    })
    return targetAnswer(result)
  }
}
