import type { StoredEvent } from '../../../db/hooks/events.ts'
import type { Provider } from '../../../db/hooks/providers.ts'
import type { Replay } from '../../../db/hooks/replays.ts'
import type { Connections, OutboundRequest, OutboundResult } from '../../../kernel/net/outbound.ts'
import type { Clock } from '../../../kernel/time.ts'
import { cleanText } from '../deliveries/fields.ts'
import { deliveryKey, loopHeader } from '../installation.ts'
import { headersByName } from '../redact.ts'
import type { Registry } from '../registry.ts'
import { schemeOf } from '../schemes/schemes.ts'
import { isSignedProvider, type SigningSecrets } from '../schemes/secrets.ts'
import { signDelivery, type Key } from '../schemes/signatures.ts'
import {
  ANSWER_BYTES,
  isSuccess,
  keptAnswer,
  outgoingHeaders,
  targetAnswer,
  type Target,
} from './outgoing.ts'

/** What attempts are made with. */
export interface AttemptParts extends Signers {
  clock: Clock
  /** Sends a request; refuses addresses that are not public, unless the request is trusted. */
  post: (request: OutboundRequest) => Promise<OutboundResult>
}

/** How one attempt differs from another. */
export interface AttemptOptions {
  /** What the receiver knows the delivery by, where the signature covers such an id. */
  deliveryId: string
  /** Headers beside those of the event. */
  headers: Readonly<Record<string, string>>
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

/** Less than a claim of a delivery lasts: nobody else sends the event meanwhile. */
const TIMEOUT_MS = 10_000
/** An answer on a kept connection is read so far, so that the connection can be used again. */
const KEPT_CONNECTION_BYTES = 64 * 1024

/** What may be done about a refused target. */
export const ALLOW = 'an operator can allow it in HOOKS_REPLAY_TARGETS'

/**
 * Sends a stored event to a target once: the bytes as received, signed again for a signed provider.
 * Replays and destinations send by this alone. The caller records what came of it.
 */
export async function makeAttempt(
  parts: AttemptParts,
  event: StoredEvent,
  { url, trusted }: Target,
  { deliveryId, headers: extra, keeps, ...how }: AttemptOptions,
): Promise<Attempt> {
  const at = parts.clock.now()
  const headers = headersToSend(event, parts, at, deliveryId)
  const nothing = { status: null, ms: 0, answer: null, at, retryAfter: undefined }
  if (headers === undefined) return { ...nothing, outcome: 'refused', detail: NO_SECRET }
  const result = await parts.post({
    url,
    headers: { ...headers.all, ...extra },
    body: event.payload,
    timeoutMs: TIMEOUT_MS,
    trusted,
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
    ...{ outcome, status, ms, at },
    detail: cleanText(detail),
    answer: isKept ? keptAnswer(result, url, headers.signature) : null,
    retryAfter: result.kind === 'answered' ? result.retryAfter : undefined,
  }
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

/** What a replay is known by: the receiver gets what the sender sent, and its id of it. */
export function replayIdentity(signers: Signers, event: StoredEvent) {
  return { deliveryId: sendersId(event, signers), headers: { [MARKER]: String(event.id) } }
}

/**
 * The headers with which an event is sent: its content type, those of the provider, the mark by
 * which a loop is found, and for a signed provider a signature of the time `at`, over `deliveryId`
 * where the scheme signs an id. Undefined without the secret to sign with.
 */
export function headersToSend(
  event: StoredEvent,
  signers: Signers,
  at: Date,
  deliveryId: string,
): OutgoingHeaders | undefined {
  const signature = signAgain(event, signers, at, deliveryId)
  if (signature === undefined) return undefined
  const { registry } = signers
  const stored = headersByName(event.headers)
  const all = {
    ...(event.content_type !== null && { 'content-type': event.content_type }),
    ...outgoingHeaders(stored),
    ...loopHeader(registry.installation, stored),
    ...signature,
  }
  return { all, signature }
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
  if (scheme.algorithm === 'ed25519') return {}
  const key = currentKey(row, secrets)
  return key === undefined ? undefined : signDelivery(scheme, { id, body }, key, at)
}

function currentKey(row: Provider, secrets: SigningSecrets): Key | undefined {
  const { name } = row
  if (isSignedProvider(name)) return secrets.of(name)?.accepted[0]
  const found = secrets.keyIn(row)
  return 'key' in found ? found.key : undefined
}
