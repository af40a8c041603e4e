import Type from 'typebox'
import type { Database } from '../../../db/client.ts'
import { eventQueries, type StoredEvent } from '../../../db/hooks/events.ts'
import type { Provider } from '../../../db/hooks/providers.ts'
import { Replay, replayQueries } from '../../../db/hooks/replays.ts'
import { notFound } from '../../../kernel/fault.ts'
import type { HostSet } from '../../../kernel/net/addresses.ts'
import type { OutboundRequest, OutboundResult } from '../../../kernel/net/outbound.ts'
import type { Clock } from '../../../kernel/time.ts'
import { makeChange, type ChangeTools } from '../../audit.ts'
import {
  ANSWER_BYTES,
  chooseTarget,
  isSuccess,
  keptAnswer,
  outgoingHeaders,
  targetAnswer,
  type Target,
} from './outgoing.ts'
import { headersByName, redactUrlTokens } from '../redact.ts'
import type { Registry } from '../registry.ts'
import { schemeOf } from '../schemes/schemes.ts'
import { isSignedProvider, type SigningSecrets } from '../schemes/secrets.ts'
import { signDelivery, type Key } from '../schemes/signatures.ts'

/** What a replay works with. */
export interface ReplayParts extends Signers {
  registry: Pick<Registry, 'provider' | 'settings'>
  db: Database
  clock: Clock
  /** The hosts of HOOKS_REPLAY_TARGETS. */
  replayTargets: () => HostSet | undefined
  /** Sends a request; refuses addresses that are not public, unless the request is trusted. */
  post: (request: OutboundRequest) => Promise<OutboundResult>
}

const TIMEOUT_MS = 10_000

/** Tells a receiver that this is not the first delivery; the value is the event's id here. */
const MARKER = 'x-gatehouse-replay'
/** The result of a replay. The target's answer is for the page of the event alone. */
export const Sent = Type.Omit(Replay, ['id', 'answer'])
export type Sent = Type.Static<typeof Sent>

/** What may be done about a refused target. */
export const ALLOW = 'an operator can allow it in HOOKS_REPLAY_TARGETS'

/** Sends a stored event again. The replay has a line in the audit, whatever its outcome. */
export async function replayEvent(
  parts: ReplayParts & ChangeTools,
  id: number,
  targetUrl: string | undefined,
): Promise<Sent> {
  const { row, replay, url } = await sendStored(parts, id, targetUrl)
  const subject = `event ${id} to ${auditedUrl(url)}`
  const note = { service: 'hooks', action: 'event replay', subject } as const
  await makeChange(parts, note, (tx) => replayQueries.saveReplay(tx, row))
  return replay
}

/** The same for one event of a job, which has a line of its own. */
export async function replayOfJob(
  parts: ReplayParts,
  id: number,
  targetUrl: string,
): Promise<Sent> {
  const { row, replay } = await sendStored(parts, id, targetUrl)
  await replayQueries.saveReplay(parts.db, row)
  return replay
}

/** A URL without its query, where tokens stand. */
export function auditedUrl({ origin, pathname, search }: URL): string {
  return redactUrlTokens(origin + pathname) + (search === '' ? '' : '?…')
}

/**
 * Sends a stored event to a target, or to the default one: the bytes as received, signed again for
 * a signed provider. The caller records it, whatever its outcome (decisions.md section 3, Replay).
 */
async function sendStored(parts: ReplayParts, id: number, targetUrl: string | undefined) {
  const event = await eventQueries.findEvent(parts.db, { id })
  if (event === undefined) throw notFound(`There is no event ${id}.`)
  const { settings } = parts.registry
  const target = chooseTarget(targetUrl, settings.replay_default_target, parts.replayTargets())
  const at = parts.clock.now()
  const { answer, ...result } = await send(parts, event, target, at)
  const shownTarget = redactUrlTokens(target.url.href)
  const replay = { kind: 'replay' as const, target: shownTarget, at, ...result }
  return { replay, row: { event: id, ...replay, answer }, url: target.url }
}

async function send(
  parts: ReplayParts,
  event: StoredEvent,
  { url, trusted }: Target,
  at: Date,
): Promise<Pick<Replay, 'outcome' | 'status' | 'ms' | 'detail' | 'answer'>> {
  const headers = headersToSend(event, parts, at)
  if (headers === undefined) {
    return { outcome: 'refused', status: null, ms: 0, detail: NO_SECRET, answer: null }
  }
  const result = await parts.post({
    url,
    headers: { ...headers.all, [MARKER]: String(event.id) },
    body: event.payload,
    timeoutMs: TIMEOUT_MS,
    trusted,
    answerBytes: ANSWER_BYTES,
  })
  const answered = { ...targetAnswer(result), answer: keptAnswer(result, url, headers.signature) }
  if (result.kind === 'refused') {
    return { ...answered, outcome: 'refused', detail: `${result.reason}; ${ALLOW}` }
  }
  return { ...answered, outcome: isSuccess(answered.status) ? 'delivered' : 'failed' }
}

/** The current secrets of signed providers: configured (`secrets`), or stored (`registry`). */
export interface Signers {
  secrets: SigningSecrets
  registry: Pick<Registry, 'provider'>
}

/** Why an event can't be signed again, in words. */
export const NO_SECRET =
  'the secret of the provider is not configured, so the body cannot be signed again'

interface OutgoingHeaders {
  all: Readonly<Record<string, string>>
  /** Those of them that sign the event; none of an event that was not signed. */
  signature: Readonly<Record<string, string>>
}

/**
 * The headers with which an event is sent: its content type, those of the provider, and for a
 * signed provider a signature of the time `at`. Undefined without the secret to sign with.
 */
export function headersToSend(
  event: StoredEvent,
  signers: Signers,
  at: Date,
): OutgoingHeaders | undefined {
  const signature = signAgain(event, signers, at)
  if (signature === undefined) return undefined
  const { content_type, headers } = event
  const all = {
    ...(content_type !== null && { 'content-type': content_type }),
    ...outgoingHeaders(headersByName(headers)),
    ...signature,
  }
  return { all, signature }
}

/**
 * New signature headers by the provider's current secret: none for an event that was not signed,
 * or that only its sender can sign; undefined without the secret.
 */
function signAgain(
  { id, provider, trust_mode, payload: body, external_id }: StoredEvent,
  { secrets, registry }: Signers,
  at: Date,
): Readonly<Record<string, string>> | undefined {
  if (trust_mode !== 'signed') return {}
  const row = registry.provider(provider)
  const scheme = row && schemeOf(row)
  if (row === undefined || scheme === undefined) return undefined
  if (scheme.algorithm === 'ed25519') return {}
  const key = currentKey(row, secrets)
  // A delivery id that was too long to be kept is represented by a hash, which holds no full stop.
  const delivery = { id: external_id ?? `event-${id}`, body }
  return key === undefined ? undefined : signDelivery(scheme, delivery, key, at)
}

function currentKey(row: Provider, secrets: SigningSecrets): Key | undefined {
  const { name } = row
  if (isSignedProvider(name)) return secrets.of(name)?.accepted[0]
  const found = secrets.keyIn(row)
  return 'key' in found ? found.key : undefined
}
