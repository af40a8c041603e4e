import type { IncomingHttpHeaders } from 'node:http'
import type { NewEvent, SavedEvent, SecretName, Sender } from '../../db/hooks/rows.ts'
import { genericFields, readMembers, signedFields, type EventFields } from './event-fields.ts'
import type { Ingest } from './ingest.ts'
import { sanitizeHeaders } from './redact.ts'
import type { SecretUses } from './secret-use.ts'
import { acceptsPrevious, keysAt, readKeys } from './sender-keys.ts'
import { verifySignature } from './signatures.ts'
import type { Verification } from './signed-delivery.ts'
import type { ProviderSecrets, SignedProvider, SigningSecrets } from './signing-secrets.ts'
import { verifyStandard } from './standard-webhooks.ts'
import { cleanText, sha256Hex } from './text.ts'
import { presentedToken, tokenMatches } from './tokens.ts'

/** What comes of a delivery before its body. */
export interface DeliveryHead {
  readonly provider: string
  readonly headers: IncomingHttpHeaders
  /** The query's text: looked at for a token only, never stored. */
  readonly search: string
  readonly client: string
  readonly receivedAt: Date
}

/** A delivery as it came in, read whole. */
interface Delivery extends DeliveryHead {
  readonly body: Buffer
}

/** A delivery whose body is still arriving. */
export interface Receiving {
  /** Gets the body's bytes as they arrive. */
  readonly update: (part: Buffer) => void
  /** Verifies and stores the delivery; called once, with the whole body. */
  readonly finish: (body: Buffer) => Promise<Outcome>
}

/** Where deliveries go, by which secrets they are verified, and where it is noted which one it was. */
export interface ReceiveParts {
  readonly ingest: Ingest
  readonly secrets: SigningSecrets
  readonly secretUses: SecretUses
}

/** What became of a delivery. `reason` says why it was refused, for the operator. */
export type Outcome =
  | { readonly kind: 'stored'; readonly saved: SavedEvent }
  | { readonly kind: 'handshake'; readonly challenge: string }
  | {
      readonly kind: 'refused'
      readonly status: 400 | 401 | 403
      readonly reason: string
      readonly detail: string
    }
  | { readonly kind: 'overloaded' }

/** A delivery to a signed receiver: verified, then read, then stored (hooks.md section 4). */
export function startSigned(
  parts: ReceiveParts,
  head: DeliveryHead & { readonly provider: SignedProvider },
  secrets: ProviderSecrets,
  freshnessSeconds: number,
): Receiving {
  const verifier = verifySignature(head.provider, head, secrets, freshnessSeconds)
  return {
    update: verifier.update,
    finish: (body) => receiveSigned(parts, { ...head, body }, secrets, verifier.finish(body)),
  }
}

async function receiveSigned(
  { ingest, secretUses }: ReceiveParts,
  delivery: Delivery & { readonly provider: SignedProvider },
  { since }: ProviderSecrets,
  verification: Verification,
): Promise<Outcome> {
  const { provider, headers, body, receivedAt } = delivery
  if (!verification.ok) {
    const detail = verification.status === 400 ? HEADER_MISSING : SIGNATURE_WRONG
    return { kind: 'refused', status: verification.status, reason: verification.reason, detail }
  }
  const { secret } = verification
  secretUses.record({ provider, secret, at: receivedAt, rotated_at: null, since })
  const members = readMembers(body, headers['content-type'])
  if (members === undefined) {
    return {
      kind: 'refused',
      status: 400,
      reason: 'body is no JSON object or form',
      detail: BODY_UNREADABLE,
    }
  }
  if (provider === 'chat' && members['type'] === 'url_verification') {
    const { challenge } = members
    // A list as text could be deeper than the stack.
    return { kind: 'handshake', challenge: typeof challenge === 'string' ? challenge : '' }
  }
  const bodyHash = sha256Hex(body)
  const fields = signedFields(provider, headers, members)
  const external_id = fields.external_id ?? `sha256:${bodyHash}`
  return store(ingest, delivery, { ...fields, external_id }, SIGNED, bodyHash)
}

/** A delivery to a generic receiver: its caller is authenticated, its bytes are stored as they are. */
export function startGeneric(
  parts: ReceiveParts,
  head: DeliveryHead,
  sender: Sender,
  pathToken: string | undefined,
  freshnessSeconds: number,
): Receiving {
  const { update, finish } = startProof(head, sender, parts.secrets, pathToken, freshnessSeconds)
  return {
    update,
    finish: (body) => receiveGeneric(parts, { ...head, body }, sender, finish(body)),
  }
}

async function receiveGeneric(
  { ingest, secretUses }: ReceiveParts,
  delivery: Delivery,
  sender: Sender,
  proof: Proof,
): Promise<Outcome> {
  if ('reason' in proof) return { kind: 'refused', status: 403, ...proof }
  const { trust, secret } = proof
  if (secret !== null) {
    const { provider, receivedAt: at } = delivery
    const { rotated_at } = sender
    secretUses.record({ provider, secret, at, rotated_at, since: rotated_at })
  }
  const fields = genericFields(delivery.headers)
  return store(ingest, delivery, fields, trust, sha256Hex(delivery.body))
}

type Trust = Pick<NewEvent, 'trust_mode' | 'verified' | 'verify_detail'>

const SIGNED: Trust = { trust_mode: 'signed', verified: true, verify_detail: 'hmac-sha256 ok' }
const TOKEN: Trust = { trust_mode: 'token', verified: false, verify_detail: 'token ok' }
const OPEN: Trust = { trust_mode: 'open', verified: false, verify_detail: null }

/** How far a generic sender's delivery is to be trusted and by which secret, or why it is refused. */
type Proof =
  | { readonly trust: Trust; readonly secret: SecretName | null }
  | { readonly reason: string; readonly detail: string }

/** The proof of a delivery whose body is still arriving: only a signature depends on it. */
function startProof(
  head: DeliveryHead,
  sender: Sender,
  secrets: SigningSecrets,
  path: string | undefined,
  freshnessSeconds: number,
): { readonly update: (part: Buffer) => void; readonly finish: (body: Buffer) => Proof } {
  if (sender.trust_mode !== 'signed') {
    return { update: () => undefined, finish: () => proveCaller(head, sender, path) }
  }
  const keys = readKeys(secrets, sender)
  if ('problem' in keys) {
    const proof = { reason: 'secret missing', detail: SIGNATURE_WRONG }
    return { update: () => undefined, finish: () => proof }
  }
  const accepted = keysAt(keys, sender, head.receivedAt)
  const verifier = verifyStandard(head, accepted, freshnessSeconds)
  return {
    update: verifier.update,
    finish(body) {
      const verification = verifier.finish(body)
      if (!verification.ok) return { reason: verification.reason, detail: SIGNATURE_WRONG }
      return { trust: SIGNED, secret: verification.secret }
    },
  }
}

function proveCaller(
  { headers, search, receivedAt }: DeliveryHead,
  sender: Sender,
  path: string | undefined,
): Proof {
  if (sender.trust_mode === 'open') return { trust: OPEN, secret: null }
  const token = presentedToken({ headers, search, path })
  const secret = token === undefined ? undefined : matchingToken(token, sender, receivedAt)
  if (secret !== undefined) return { trust: TOKEN, secret }
  return { reason: tokenReason(token, sender), detail: TOKEN_WRONG }
}

const HEADER_MISSING =
  'The header X-Chat-Request-Timestamp is missing; send the time the signature was made at.'
const SIGNATURE_WRONG =
  'The signature is missing, malformed, stale or wrong; sign the exact bytes of the body with the shared secret.'
const BODY_UNREADABLE = 'The body is neither a JSON object nor a form; send one of them.'
const TOKEN_WRONG = 'The token is missing or wrong; send it as Authorization: Bearer.'

/** Which of a sender's tokens this is; both are compared whatever the first comparison says. */
function matchingToken(token: string, sender: Sender, at: Date): SecretName | undefined {
  const current = tokenMatches(token, sender.token_hash)
  const previous = tokenMatches(token, sender.retired_hash)
  if (current) return 'current'
  return previous && acceptsPrevious(sender, at) ? 'previous' : undefined
}

function tokenReason(token: string | undefined, sender: Sender): string {
  if (token === undefined || token === '') return 'token missing'
  if (tokenMatches(token, sender.retired_hash)) return 'matches a retired token'
  if (tokenMatches(token.trim(), sender.token_hash))
    return 'would match without white space around the token'
  return 'wrong token'
}

async function store(
  ingest: Ingest,
  delivery: Delivery,
  fields: EventFields,
  trust: Trust,
  bodyHash: string,
): Promise<Outcome> {
  const saved = await ingest.save({
    provider: delivery.provider,
    ...fields,
    ...trust,
    content_type: cleanText(delivery.headers['content-type']),
    source_ip: delivery.client,
    headers: sanitizeHeaders(delivery.headers),
    body: delivery.body,
    body_hash: bodyHash,
    received_at: delivery.receivedAt,
  })
  return saved === undefined ? { kind: 'overloaded' } : { kind: 'stored', saved }
}
