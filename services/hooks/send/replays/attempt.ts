import type { StoredEvent } from '../../../../db/hooks/log/events.ts'
import type { Replay } from '../../../../db/hooks/send/replays.ts'
import type {
  Connections,
  OutboundRequest,
  OutboundResult,
} from '../../../../kernel/net/outbound.ts'
import type { Clock } from '../../../../kernel/time.ts'
import { cleanText } from '../../receive/deliveries/fields.ts'
import { headersByName } from '../../receive/deliveries/stored-headers.ts'
import { deliveryKey, loopHeader } from '../../receive/installation.ts'
import type { Registry } from '../../registry.ts'
import { schemeOf } from '../../receive/schemes/schemes.ts'
import type { SigningSecrets } from '../../receive/schemes/signing-secrets.ts'
import { currentKey } from '../../receive/schemes/secrets.ts'
import { isSignable, signDelivery } from '../../receive/schemes/signing.ts'
import { ANSWER_BYTES, isSuccess, keptAnswer, outgoingHeaders, requestMarks } from './outgoing.ts'

/** What attempts are made with. */
export interface AttemptParts extends Signers {
  clock: Clock
  /** Sends a request; refuses addresses that are not public, unless the request is trusted. */
  post: (request: OutboundRequest) => Promise<OutboundResult>
}

/** What is sent of an event. */
export interface EventRequest {
  url: URL
  headers: Readonly<Record<string, string>>
  body: Buffer
  /** The headers that sign it. */
  signature: Readonly<Record<string, string>>
  /** The credentials among the headers, as texts that must not be kept of an answer. */
  credentials?: readonly string[]
}

/** Why an event can't be sent, in words. */
export interface Problem {
  problem: string
}

/** How one attempt differs from another. */
interface AttemptOptions {
  /** When it was signed. */
  at: Date
  /** True for a target that an operator vouches for. */
  trusted: boolean
  timeoutMs: number
  /** Of which answers the beginning is kept. */
  keeps: 'all answers' | 'answers of failures'
  /** Connections that may be used again; without them it has one of its own. */
  connections?: Connections
  /** Ends it early. */
  signal?: AbortSignal
}

/** What came of an attempt. */
export interface Attempt extends Pick<
  Replay,
  'outcome' | 'status' | 'ms' | 'detail' | 'answer' | 'at'
> {
  /** The header of this name. */
  retryAfter: string | undefined
}

/** An answer on a kept connection is read so far, so that the connection can be used again. */
const KEPT_CONNECTION_BYTES = 64 * 1024

/** What may be done about a refused target. */
export const ALLOW = 'an operator can allow it in HOOKS_REPLAY_TARGETS'

/**
 * Sends an event once. Replays and destinations send by this alone. The caller records what came
 * of it.
 */
export async function makeAttempt(
  parts: Pick<AttemptParts, 'post'>,
  request: EventRequest | Problem,
  { at, keeps, ...how }: AttemptOptions,
): Promise<Attempt> {
  const nothing = { status: null, ms: 0, answer: null, at, retryAfter: undefined }
  if ('problem' in request) return { ...nothing, outcome: 'refused', detail: request.problem }
  const { url, headers, body, signature, credentials } = request
  const result = await parts.post({
    url,
    headers,
    body,
    answerBytes: how.connections === undefined ? ANSWER_BYTES : KEPT_CONNECTION_BYTES,
    ...how,
  })
  const { status, ms, detail } = targetAnswer(result)
  if (result.kind === 'refused') {
    return { ...nothing, ms, outcome: 'refused', detail: `${result.reason}; ${ALLOW}` }
  }
  const outcome = isSuccess(status) ? 'delivered' : 'failed'
  const isKept = keeps === 'all answers' || outcome === 'failed'
  return {
    outcome,
    status,
    ms,
    at,
    detail: cleanText(detail),
    answer: isKept ? keptAnswer(result, url, signature, credentials) : null,
    retryAfter: result.kind === 'answered' ? result.headers['retry-after'] : undefined,
  }
}

/**
 * What a target answered to an event; without an answer the status is null and `detail` says why.
 */
export type TargetAnswer = Pick<Replay, 'status' | 'ms' | 'detail'>

export function targetAnswer(result: OutboundResult): TargetAnswer {
  const { ms } = result
  if (result.kind !== 'answered') return { status: null, ms, detail: result.reason }
  const { status } = result
  const isRedirect = status >= 300 && status < 400
  return { status, ms, detail: isRedirect ? 'redirects are not followed' : null }
}

/** The current secrets of signed providers: configured (`secrets`), or stored (`registry`). */
export interface Signers {
  secrets: SigningSecrets
  registry: Pick<Registry, 'provider' | 'installation'>
}

/** Why an event can't be signed again, in words. */
export const NO_SECRET =
  'the secret of the provider is not configured, so the body cannot be signed again'

interface OutgoingHeaders {
  all: Readonly<Record<string, string>>
  /** Those of them that sign the event; none of an event that was not signed. */
  signature: Readonly<Record<string, string>>
}

/** Tells a receiver that this is not the first delivery; the value is the event's id here. */
const MARKER = 'x-gatehouse-replay'

/** The id that the sender gave a delivery, or our own key where it gave none. */
export function sendersId(event: StoredEvent, { registry }: Signers): string {
  // A delivery id that was too long to be kept is represented by a hash, which holds no full stop.
  return event.external_id ?? deliveryKey(registry.installation, event)
}

/**
 * The request of a replay: the bytes as stored, signed again for a signed provider, and marked as a
 * replay. `marks` are further headers.
 */
export function replayRequest(
  signers: Signers,
  event: StoredEvent,
  url: URL,
  at: Date,
  marks: Readonly<Record<string, string>> = {},
): EventRequest | Problem {
  // The receiver gets what the provider sent: also the id by which it knows the delivery already.
  const signed = headersToSend(event, signers, at, sendersId(event, signers))
  if (signed === undefined) return { problem: NO_SECRET }
  const headers = { ...signed.all, [MARKER]: String(event.id), ...marks }
  return { url, headers, body: event.payload, signature: signed.signature }
}

/**
 * The headers of an event that is sent: its content type, the headers of the provider, and
 * `CDN-Loop`. A signed provider adds a signature of the time `at`, over `deliveryId` if the scheme
 * signs an id. Undefined without the secret to sign with.
 */
export function headersToSend(
  event: StoredEvent,
  signers: Signers,
  at: Date,
  deliveryId: string,
): OutgoingHeaders | undefined {
  const signature = signAgain(event, signers, at, deliveryId)
  if (signature === undefined) return undefined
  return { all: { ...unsignedHeaders(event, signers), ...signature }, signature }
}

/** The same without a signature, which needs no secret. */
export function unsignedHeaders(
  event: StoredEvent,
  signers: Signers,
): Readonly<Record<string, string>> {
  return {
    ...(event.content_type !== null && { 'content-type': event.content_type }),
    ...outgoingHeaders(headersByName(event.headers)),
    ...requestMarks(event),
    ...loopMark(event, signers),
  }
}

/** The header by which a loop is found. */
export function loopMark(
  { headers }: StoredEvent,
  { registry }: Signers,
): Readonly<Record<string, string>> {
  return loopHeader(registry.installation, headersByName(headers))
}

/**
 * New signature headers by the provider's current secret: none for an event that was not signed,
 * or that only its sender can sign; undefined without the secret.
 */
function signAgain(
  { provider, trust_mode, payload: body }: StoredEvent,
  { secrets, registry }: Signers,
  at: Date,
  id: string,
): Readonly<Record<string, string>> | undefined {
  if (trust_mode !== 'signed') return {}
  const row = registry.provider(provider)
  const scheme = row && schemeOf(row)
  if (row === undefined || scheme === undefined) return undefined
  if (!isSignable(scheme)) return {}
  const key = currentKey(secrets, row)
  return key === undefined ? undefined : signDelivery(scheme, { id, body }, key, at)
}
