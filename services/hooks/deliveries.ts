import type { IncomingHttpHeaders } from 'node:http'
import type { NewEvent, SavedEvent } from '../../db/hooks/deliveries.ts'
import type { Provider, SecretName, TrustMode } from '../../db/hooks/providers.ts'
import { badRequest, Fault, forbidden, notFound, unavailable } from '../../kernel/fault.ts'
import {
  cleanText,
  genericFields,
  readMembers,
  sha256Hex,
  signedFields,
  type EventFields,
} from './event-fields.ts'
import type { Hooks } from './open.ts'
import { sanitizeHeaders } from './redact.ts'
import { verifySignature, type Verification } from './schemes.ts'
import {
  acceptsPrevious,
  isSignedProvider,
  keysAt,
  mayDeliver,
  presentedToken,
  tokenMatches,
  type ProviderSecrets,
  type SignedProvider,
} from './secrets.ts'

/** What comes of a delivery before its body. */
export interface DeliveryHead {
  readonly provider: string
  readonly headers: IncomingHttpHeaders
  /** The query's text: searched for a token only, never stored. */
  readonly search: string
  readonly client: string
  readonly receivedAt: Date
}

/** A delivery whose body is still arriving. */
export interface Receiving {
  /** Takes the body's bytes as they arrive. */
  readonly update: (part: Buffer) => void
  /** Verifies and stores the delivery; called once, with the whole body. */
  readonly finish: (body: Buffer) => Promise<Received>
}

/** A delivery that was accepted; a handshake is echoed and not stored. */
export type Received =
  | { readonly kind: 'stored'; readonly saved: SavedEvent }
  | { readonly kind: 'handshake'; readonly challenge: string }

/** What receives deliveries. */
export interface Receiver extends Pick<
  Hooks,
  'registry' | 'ingest' | 'secrets' | 'secretUses' | 'rejections'
> {
  readonly freshnessSeconds: () => number
}

/**
 * Starts a delivery to a signed receiver (hooks.md section 4): it is verified, then read, then
 * stored. Throws 404 for an unknown provider and 403 for a disabled one.
 */
export function startSigned(receiver: Receiver, head: DeliveryHead): Receiving {
  const { provider } = head
  if (!isSignedProvider(provider)) throw notFound(UNKNOWN_SIGNED)
  const secrets = receiver.secrets.of(provider)
  const row = receiver.registry.provider(provider)
  if (secrets === undefined || row === undefined) throw notFound(UNKNOWN_SIGNED)
  if (!row.enabled) throw rejected(receiver, head, disabled(provider), 'disabled')
  const verifier = verifySignature(provider, head, secrets, receiver.freshnessSeconds())
  return {
    update: verifier.update,
    finish: (body) => finishSigned(receiver, head, provider, secrets, verifier.finish(body), body),
  }
}

async function finishSigned(
  receiver: Receiver,
  head: DeliveryHead,
  provider: SignedProvider,
  { since }: ProviderSecrets,
  verification: Verification,
  body: Buffer,
): Promise<Received> {
  if ('reason' in verification) {
    const { status, reason } = verification
    const fault =
      status === 400 ? badRequest(HEADER_MISSING) : new Fault(401, 'UNAUTHORIZED', SIGNATURE_WRONG)
    throw rejected(receiver, head, fault, reason, true)
  }
  const { headers, receivedAt: at } = head
  const { secret } = verification
  receiver.secretUses.record({ provider, secret, at, rotated_at: null, since })
  const members = readMembers(body, headers['content-type'])
  if (members === undefined) throw badRequest(BODY_UNREADABLE)
  if (provider === 'chat' && members['type'] === 'url_verification') {
    const { challenge } = members
    // A list as text could be deeper than the stack.
    return { kind: 'handshake', challenge: typeof challenge === 'string' ? challenge : '' }
  }
  const bodyHash = sha256Hex(body)
  const fields = signedFields(provider, headers, members)
  const external_id = fields.external_id ?? `sha256:${bodyHash}`
  return store(receiver, head, body, { ...fields, external_id }, TRUST.signed, bodyHash)
}

/**
 * Starts a delivery to a generic receiver: its caller is authenticated, its bytes are stored
 * whatever they are. Throws 404 for an unknown provider and 403 for a disabled one.
 */
export function startGeneric(
  receiver: Receiver,
  head: DeliveryHead,
  pathToken: string | undefined,
): Receiving {
  const { provider, receivedAt } = head
  const { secrets, freshnessSeconds } = receiver
  const row = receiver.registry.provider(provider)
  if (row === undefined) throw notFound(UNKNOWN_GENERIC)
  if (!mayDeliver(row, secrets)) throw rejected(receiver, head, disabled(provider), 'disabled')
  if (row.trust_mode !== 'signed') {
    return {
      update: () => undefined,
      finish: (body) =>
        finishGeneric(receiver, head, row, proveCaller(head, row, pathToken), body, TOKEN_WRONG),
    }
  }
  const keys = keysAt(secrets, row, receivedAt)
  const verifier = verifySignature('standard_webhooks', head, keys, freshnessSeconds())
  return {
    update: verifier.update,
    finish: (body) =>
      finishGeneric(receiver, head, row, verifier.finish(body), body, SIGNATURE_WRONG),
  }
}

async function finishGeneric(
  receiver: Receiver,
  head: DeliveryHead,
  { trust_mode, rotated_at }: Provider,
  proof: Proof,
  body: Buffer,
  wrong: string,
): Promise<Received> {
  if ('reason' in proof) throw rejected(receiver, head, forbidden(wrong), proof.reason, true)
  const { provider, headers, receivedAt: at } = head
  const { secret } = proof
  if (secret !== null) {
    receiver.secretUses.record({ provider, secret, at, rotated_at, since: rotated_at })
  }
  return store(receiver, head, body, genericFields(headers), TRUST[trust_mode], sha256Hex(body))
}

/** Counts a rejected delivery (401, 403, 413) and gives the fault to be thrown. */
export function rejected(
  { rejections }: Receiver,
  { provider, client, receivedAt: at }: DeliveryHead,
  fault: Fault,
  reason: string,
  wrongSecret = false,
): Fault {
  const { status } = fault
  if (status === 401 || status === 403 || status === 413) {
    rejections.record({ provider, status, client, reason, at, wrongSecret })
  }
  return fault
}

type Trust = Pick<NewEvent, 'trust_mode' | 'verified' | 'verify_detail'>

/** How far an accepted delivery is trusted. */
const TRUST: Readonly<Record<TrustMode, Trust>> = {
  signed: { trust_mode: 'signed', verified: true, verify_detail: 'hmac-sha256 ok' },
  token: { trust_mode: 'token', verified: false, verify_detail: 'token ok' },
  open: { trust_mode: 'open', verified: false, verify_detail: null },
  queue: { trust_mode: 'queue', verified: false, verify_detail: null },
}

/** By which secret a generic delivery was accepted, or why it is rejected. */
type Proof = { readonly secret: SecretName | null } | { readonly reason: string }

function proveCaller(
  { headers, search, receivedAt }: DeliveryHead,
  row: Provider,
  path: string | undefined,
): Proof {
  if (row.trust_mode === 'open') return { secret: null }
  const token = presentedToken(headers, search, path)
  if (token === undefined || token === '') return { reason: 'token missing' }
  // Both are compared whatever the first comparison says.
  const current = tokenMatches(token, row.token_hash)
  const previous = tokenMatches(token, row.previous_hash)
  if (current) return { secret: 'current' }
  if (previous && acceptsPrevious(row, receivedAt)) return { secret: 'previous' }
  if (previous) return { reason: 'matches a retired token' }
  const isPadded = tokenMatches(token.trim(), row.token_hash)
  return { reason: isPadded ? 'would match without white space around the token' : 'wrong token' }
}

async function store(
  { ingest }: Receiver,
  { provider, headers, client, receivedAt }: DeliveryHead,
  body: Buffer,
  fields: EventFields,
  trust: Trust,
  bodyHash: string,
): Promise<Received> {
  const saved = await ingest.save({
    provider,
    ...fields,
    ...trust,
    content_type: cleanText(headers['content-type']),
    source_ip: client,
    headers: sanitizeHeaders(headers),
    body,
    body_hash: bodyHash,
    received_at: receivedAt,
  })
  if (saved === undefined) throw overloaded()
  return { kind: 'stored', saved }
}

/** 503: too much is waiting. */
export function overloaded(): Fault {
  return unavailable('More is arriving than can be stored; nothing was stored. Try again shortly.')
}

function disabled(provider: string): Fault {
  return forbidden(`The provider ${provider} is disabled; enable it on the providers page.`)
}

const UNKNOWN_SIGNED =
  'No signed provider is configured under this name; set its secret to configure it.'
const UNKNOWN_GENERIC =
  'There is no generic provider under this name; an operator creates it first.'
const HEADER_MISSING =
  'The header X-Chat-Request-Timestamp is missing; send the time the signature was made at.'
const SIGNATURE_WRONG =
  'The signature is missing, malformed, stale or wrong; sign the exact bytes of the body with the shared secret.'
const BODY_UNREADABLE = 'The body is neither a JSON object nor a form; send one of them.'
const TOKEN_WRONG = 'The token is missing or wrong; send it as Authorization: Bearer.'
