import { saveAttempt } from '../../db/hooks/attempts.ts'
import { findEvent } from '../../db/hooks/events.ts'
import type { Attempt, StoredEvent } from '../../db/hooks/rows.ts'
import type { Database } from '../../db/client.ts'
import type { Clock } from '../../kernel/time.ts'
import type { HostSet } from '../../kernel/net/addresses.ts'
import type { OutboundRequest, OutboundResult } from '../../kernel/net/outbound.ts'
import { headersToSend, NO_SECRET, type Signers } from './outgoing-event.ts'
import { redactUrlTokens } from './redact.ts'
import { chooseTarget, type ReplayTarget } from './replay-target.ts'
import { isSuccess, targetAnswer } from './target-answer.ts'

/** What a replay works with; the network is one of them. */
export interface ReplayParts extends Signers {
  readonly db: Database
  readonly clock: Clock
  readonly defaultTarget: () => string | null
  /** The hosts of HOOKS_REPLAY_TARGETS. */
  readonly replayTargets: () => HostSet | undefined
  /** Sends a request out and keeps it off addresses that are not public. */
  readonly post: (request: OutboundRequest) => Promise<OutboundResult>
}

/** The target answered; `delivered` when it did so with 2xx. */
export interface Replayed {
  readonly id: number
  /** Without tokens. */
  readonly target_url: string
  readonly delivered: boolean
  readonly response_status: number
  readonly response_ms: number
}

/**
 * Why there is no answer. `replay_failed` is recorded as an attempt (refused address, no answer in
 * time, no secret to sign with); the others are said before anything is tried.
 */
export interface ReplayRefusal {
  readonly code: 'not_found' | 'invalid_argument' | 'replay_failed'
  readonly message: string
}

/** Sends an event to a target, or to the default target of the settings. */
export type Replay = (
  id: number,
  targetUrl: string | undefined,
) => Promise<Replayed | ReplayRefusal>

const TIMEOUT_MS = 10_000

/** Tells a receiver that this is no first delivery; the value is the event's id here. */
const MARKER = 'x-gatehouse-replay'

/**
 * Sends a stored event to a target, or to the default one: the bytes as received, signed anew for a
 * signed provider. The attempt is recorded, whatever comes of it (decisions.md section 3, Replay).
 */
export async function replayEvent(
  parts: ReplayParts,
  id: number,
  targetUrl: string | undefined,
): Promise<Replayed | ReplayRefusal> {
  const event = await findEvent(parts.db, id)
  if (event === undefined) return { code: 'not_found', message: `There is no event ${id}.` }
  const target = chooseTarget(targetUrl, parts.defaultTarget(), parts.replayTargets())
  if ('message' in target) return { code: 'invalid_argument', message: target.message }

  const at = parts.clock.now()
  const target_url = redactUrlTokens(target.url.href)
  const attempt = await send(parts, event, target, at)
  await saveAttempt(parts.db, id, { kind: 'replay', target: target_url, at, ...attempt })
  const { outcome, status, ms, detail } = attempt
  if (status === null) return { code: 'replay_failed', message: `Not delivered: ${detail ?? ''}.` }
  const delivered = outcome === 'delivered'
  return { id, target_url, delivered, response_status: status, response_ms: ms }
}

type Result = Pick<Attempt, 'outcome' | 'status' | 'ms' | 'detail'>

async function send(
  parts: ReplayParts,
  event: StoredEvent,
  { url, trusted }: ReplayTarget,
  at: Date,
): Promise<Result> {
  const headers = headersToSend(event, parts, at)
  if (headers === undefined) return { outcome: 'refused', status: null, ms: 0, detail: NO_SECRET }
  const result = await parts.post({
    url,
    headers: { ...headers, [MARKER]: String(event.id) },
    body: event.payload,
    timeoutMs: TIMEOUT_MS,
    trusted,
    answerBytes: 0,
  })
  const answer = targetAnswer(result)
  if (result.kind === 'refused') {
    return { ...answer, outcome: 'refused', detail: `${result.reason}; ${ALLOW}` }
  }
  return { ...answer, outcome: isSuccess(answer.status) ? 'delivered' : 'failed' }
}

const ALLOW = 'an operator can allow it in HOOKS_REPLAY_TARGETS'
