import type { ClaimedEvent } from '../../../db/hooks/destinations.ts'
import type { Connections } from '../../../kernel/net/outbound.ts'
import type { RandomBytes } from '../../../kernel/tokens.ts'
import { cleanText } from '../deliveries/fields.ts'
import { isSuccess, keptAnswer, targetAnswer } from '../replays/outgoing.ts'
import {
  ALLOW,
  headersToSend,
  NO_SECRET,
  type ReplayParts,
  type Signers,
} from '../replays/replays.ts'

/** What attempts are made with. */
export interface AttemptParts
  extends Signers, Pick<ReplayParts, 'clock' | 'replayTargets' | 'post'> {
  random: RandomBytes
}

/** What came of a claimed delivery, as `settleDeliveries` takes it. */
export interface Result extends Pick<ClaimedEvent, 'claimed_until'> {
  event_id: number
  fate: 'delivered' | 'again' | 'dead' | 'released'
  /** Null when it was not tried. */
  outcome: 'delivered' | 'failed' | 'refused' | null
  status: number | null
  ms: number
  detail: string | null
  /** The beginning of the answer to a try that failed; of others none is kept, they are many. */
  answer: string | null
  /** Milliseconds until the next try, where there is one. */
  wait_ms: number
  at: Date
}

/** Less than a claim lasts: nobody else sends the event meanwhile. */
const TIMEOUT_MS = 10_000
/** An answer is read so far, so that its connection can be used again. */
const ANSWER_BYTES = 64 * 1024

const MINUTE_S = 60
const HOUR_S = 3_600
/** Seconds from a failed try to the next one; after the last of them a delivery is dead. */
const WAITS_S: readonly number[] = [
  5,
  5 * MINUTE_S,
  30 * MINUTE_S,
  2 * HOUR_S,
  5 * HOUR_S,
  10 * HOUR_S,
  10 * HOUR_S,
]
/** A longer Retry-After is taken for this. */
const MAX_RETRY_AFTER_S = 24 * HOUR_S

/** Gone: the receiver will never take it. */
const GONE = 410

/**
 * Sends a claimed event to a target, with a new signature, and returns the state of the delivery. A
 * delivery that `cut` has ended is released: the next instance sends it again.
 */
export async function attempt(
  parts: AttemptParts,
  url: URL,
  event: ClaimedEvent,
  { connections, cut }: { connections: Connections; cut: AbortSignal },
): Promise<Result> {
  const at = parts.clock.now()
  const { id: event_id, claimed_until, tries, payload: body } = event
  const delivery = { event_id, claimed_until, at, wait_ms: 0, answer: null }
  const headers = headersToSend(event, parts, at)
  if (headers === undefined) {
    const refused = { outcome: 'refused', status: null, ms: 0, detail: NO_SECRET } as const
    return { ...delivery, ...refused, ...nextTry(parts, tries, undefined) }
  }
  const result = await parts.post({
    url,
    headers: { ...headers.all, 'idempotency-key': String(event_id) },
    body,
    timeoutMs: TIMEOUT_MS,
    trusted: parts.replayTargets()?.(url) === true,
    answerBytes: ANSWER_BYTES,
    connections,
    signal: cut,
  })
  const answer = targetAnswer(result)
  if (isSuccess(answer.status)) {
    return { ...delivery, ...answer, outcome: 'delivered', fate: 'delivered' }
  }
  if (cut.aborted && answer.status === null) {
    return { ...delivery, ...answer, outcome: null, fate: 'released' }
  }
  if (result.kind === 'refused') {
    const detail = `${result.reason}; ${ALLOW}`
    return { ...delivery, ...answer, detail, outcome: 'refused', fate: 'dead' }
  }
  const failed = {
    ...delivery,
    ...answer,
    outcome: 'failed' as const,
    detail: cleanText(answer.detail),
    answer: keptAnswer(result, url, headers.signature),
  }
  if (answer.status === GONE) return { ...failed, fate: 'dead' }
  const retryAfter = result.kind === 'answered' ? readRetryAfter(result.retryAfter, at) : undefined
  return { ...failed, ...nextTry(parts, tries, retryAfter) }
}

/** When a delivery is tried again: up to a fifth later by chance, and not before Retry-After. */
function nextTry({ random }: AttemptParts, tries: number, retryAfterMs = 0) {
  const wait = WAITS_S[tries]
  if (wait === undefined) return { fate: 'dead', wait_ms: 0 } as const
  const part = random(4).readUInt32LE() / 2 ** 32
  const own = Math.round(wait * 1_000 * (1 + part / 5))
  return { fate: 'again', wait_ms: Math.max(own, retryAfterMs) } as const
}

/** Retry-After in milliseconds: seconds, or an HTTP date; undefined for anything else. */
function readRetryAfter(text: string | undefined, now: Date): number | undefined {
  if (text === undefined) return undefined
  const seconds = /^\d{1,9}$/.test(text)
    ? Number(text)
    : (new Date(text).getTime() - now.getTime()) / 1_000
  if (Number.isNaN(seconds)) return undefined
  return Math.ceil(Math.min(Math.max(seconds, 0), MAX_RETRY_AFTER_S) * 1_000)
}
