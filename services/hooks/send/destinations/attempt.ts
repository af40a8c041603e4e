import type {
  ClaimedEvent,
  DeliveryResult,
  DestinationTarget,
} from '../../../../db/hooks/send/destinations.ts'
import type { HostSet } from '../../../../kernel/net/addresses.ts'
import type { Connections } from '../../../../kernel/net/outbound.ts'
import type { RandomBytes } from '../../../../kernel/tokens.ts'
import { readRetryAfter } from '../../../../kernel/net/retry-after.ts'
import { deliveryKey } from '../../receive/installation.ts'
import { makeAttempt, type AttemptParts } from '../replays/attempt.ts'
import { chooseTarget } from '../replays/outgoing.ts'
import type { Registry } from '../../registry.ts'
import { requestOf } from './outgoing.ts'
import { MAX_RETRY_AFTER_S, nextTry } from './schedule.ts'

/** What deliveries are made with. */
export interface DestinationParts extends AttemptParts {
  registry: AttemptParts['registry'] & Pick<Registry, 'settings'>
  random: RandomBytes
  /** The hosts of HOOKS_REPLAY_TARGETS. */
  replayTargets: () => HostSet | undefined
}

/** Gone: the receiver wants no more deliveries, as Standard Webhooks has it. */
const GONE = 410
const BROKEN = 'a defect of Gatehouse; the line "delivery broke" of the log has more'

/**
 * Sends a claimed event to its destination and returns the state of the delivery. A delivery that
 * `cut` has ended is released: the next instance sends it again.
 */
export async function attempt(
  parts: DestinationParts,
  target: DestinationTarget,
  event: ClaimedEvent,
  { connections, cut }: { connections: Connections; cut: AbortSignal },
): Promise<DeliveryResult> {
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
  if (made.status === GONE) return { ...result, fate: 'gone' }
  return {
    ...result,
    ...nextTry(parts.random, tries, readRetryAfter(retryAfter, made.at, MAX_RETRY_AFTER_S)),
  }
}

/** What came of an attempt that broke by a defect: a failed try, so that it is not made for ever. */
export function brokenAttempt(parts: DestinationParts, event: ClaimedEvent): DeliveryResult {
  const { id: event_id, claimed_until, tries } = event
  return {
    event_id,
    claimed_until,
    at: parts.clock.now(),
    ms: 0,
    outcome: 'failed',
    status: null,
    answer: null,
    detail: BROKEN,
    ...nextTry(parts.random, tries),
  }
}
