import { backoffMs } from '../../../kernel/time.ts'
import type { OutboundRequest, OutboundResult } from '../../../kernel/net/outbound.ts'
import type { RelayEvent, RelayResult } from './protocol.ts'
import { isSuccess, targetAnswer, type TargetAnswer } from '../outgoing.ts'

/** How events are brought to a target. */
export interface DeliveryOptions {
  readonly target: URL
  /** How often a failed event is tried again. */
  readonly retries: number
  /** Whether the next event comes when the retries are used up; else nothing comes any more. */
  readonly skipFailed: boolean
  readonly post: (request: OutboundRequest) => Promise<OutboundResult>
  readonly random: (size: number) => Buffer
  /** Aborted when the target has no more time. */
  readonly cut: AbortSignal
}

/** What is known of an event after an attempt; `left` when it was given up for the next one. */
export interface Delivered {
  readonly event: RelayEvent
  readonly result: RelayResult
  /** Attempts so far, this one included. */
  readonly attempts: number
  /** What happens now; `again` after `waitMs`. `repeat`: it was delivered before, and not sent again. */
  readonly outcome: 'delivered' | 'repeat' | 'left' | 'again' | 'given-up'
  readonly waitMs: number
}

/** Makes one attempt; `body` is undefined for an event that the server can't send on. */
export type Deliver = (event: RelayEvent, body: Buffer | undefined) => Promise<Delivered>

const TIMEOUT_MS = 30_000

/** Much of an answer is read, so that a target that still writes it sees no broken connection. */
const ANSWER_BYTES = 64 * 1024

/** Tells the target which event this is: at least once means that one may come twice. */
const MARKER = 'x-gatehouse-event'

/**
 * Brings events to the target one by one. It outlives connections: an event whose result the server
 * did not get is sent by it again, and answered with the same result instead of delivered twice.
 */
export function createDelivery(options: DeliveryOptions): Deliver {
  const { target, retries, skipFailed, post, random, cut } = options
  let settled: RelayResult | undefined
  let current: number | undefined
  let failures = 0

  async function attempt(event: RelayEvent, body: Buffer): Promise<TargetAnswer> {
    const result = await post({
      url: target,
      headers: { ...event.headers, [MARKER]: String(event.id) },
      body,
      timeoutMs: TIMEOUT_MS,
      // The one who runs the command chose the target.
      trusted: true,
      answerBytes: ANSWER_BYTES,
      signal: cut,
    })
    const answer = targetAnswer(result)
    return { ...answer, detail: answer.detail?.slice(0, 1_000) ?? null }
  }

  return async function deliver(event, body) {
    const { id } = event
    if (settled?.id === id) {
      return { event, result: settled, attempts: failures, outcome: 'repeat', waitMs: 0 }
    }
    if (current !== id) failures = 0
    current = id
    const answer =
      body === undefined
        ? { status: null, ms: 0, detail: event.refused }
        : await attempt(event, body)
    const good = isSuccess(answer.status)
    const attempts = failures + 1
    if (!good) failures++
    const over = failures > retries
    const done = good || (over && skipFailed)
    const result: RelayResult = { type: 'result', id, ...answer, done }
    if (done) settled = result
    const outcome = good ? 'delivered' : done ? 'left' : over ? 'given-up' : 'again'
    const waitMs = outcome === 'again' ? backoffMs(failures, random) : 0
    return { event, result, attempts, outcome, waitMs }
  }
}
