import type { ClaimedEvent, DestinationTarget } from '../../../db/hooks/destinations.ts'
import type { HostSet } from '../../../kernel/net/addresses.ts'
import type { Connections } from '../../../kernel/net/outbound.ts'
import type { RandomBytes } from '../../../kernel/tokens.ts'
import { deliveryKey } from '../installation.ts'
import { makeAttempt, type AttemptParts } from '../replays/attempt.ts'
import { chooseTarget } from '../replays/outgoing.ts'
import type { Registry } from '../registry.ts'
import { requestOf } from './outgoing.ts'

/** What deliveries are made with. */
export interface DestinationParts extends AttemptParts {
  registry: AttemptParts['registry'] & Pick<Registry, 'settings'>
  random: RandomBytes
  /** The hosts of HOOKS_REPLAY_TARGETS. */
  replayTargets: () => HostSet | undefined
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
const BROKEN = 'a defect of Gatehouse; the line "delivery broke" of the log has more'

/**
 * Sends a claimed event to its destination and returns the state of the delivery. A delivery that `cut` has
 * ended is released: the next instance sends it again.
 */
export async function attempt(
  parts: DestinationParts,
  target: DestinationTarget,
  event: ClaimedEvent,
  { connections, cut }: { connections: Connections; cut: AbortSignal },
): Promise<Result> {
  const { installation, settings } = parts.registry
  const delivery = { key: deliveryKey(installation, event), at: parts.clock.now() }
  // The default target of replays is trusted for replays alone.
  const standard = target.kind === 'replay' ? settings.replay_default_target : null
  const { trusted } = chooseTarget(target.url, standard, parts.replayTargets())
  const request = requestOf(parts, target, event, delivery)
  const { retryAfter, ...made } = await makeAttempt(parts, request, {
    at: delivery.at,
    timeoutMs: target.timeout_s * 1_000,
    trusted,
    // Those of good ones would fill the disk: they are many.
    keeps: 'answers of failures',
    connections,
    signal: cut,
  })
  const { id: event_id, claimed_until, tries } = event
  const result = { event_id, claimed_until, wait_ms: 0, ...made }
  if (made.outcome === 'delivered') return { ...result, fate: 'delivered' }
  if (cut.aborted && made.status === null) return { ...result, outcome: null, fate: 'released' }
  if (made.status === GONE) return { ...result, fate: 'dead' }
  return { ...result, ...nextTry(parts, tries, readRetryAfter(retryAfter, made.at)) }
}

/** What came of an attempt that broke by a defect: a failed try, so that it is not made for ever. */
export function brokenAttempt(parts: DestinationParts, event: ClaimedEvent): Result {
  const { id: event_id, claimed_until, tries } = event
  return {
    ...{ event_id, claimed_until, at: parts.clock.now(), ms: 0 },
    ...{ outcome: 'failed', status: null, answer: null, detail: BROKEN },
    ...nextTry(parts, tries),
  }
}

/** When a delivery is tried again: up to a fifth later by chance, and not before Retry-After. */
function nextTry({ random }: DestinationParts, tries: number, retryAfterMs = 0) {
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
