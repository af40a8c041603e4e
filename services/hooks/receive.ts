import type { IncomingHttpHeaders } from 'node:http'
import type { NewEvent, SavedEvent, Sender } from '../../db/hooks/rows.ts'
import { genericFields, readMembers, signedFields, type EventFields } from './event-fields.ts'
import type { Ingest } from './ingest.ts'
import { sanitizeHeaders } from './redact.ts'
import { verifySignature } from './signatures.ts'
import type { ProviderSecrets, SignedProvider } from './signing-secrets.ts'
import { cleanText, sha256Hex } from './text.ts'
import { presentedToken, tokenMatches } from './tokens.ts'

/** A delivery as it came in, read whole. */
export interface Delivery {
  readonly provider: string
  readonly headers: IncomingHttpHeaders
  /** The query's text: looked at for a token only, never stored. */
  readonly search: string
  readonly body: Buffer
  readonly client: string
  readonly receivedAt: Date
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
export async function receiveSigned(
  ingest: Ingest,
  delivery: Delivery & { readonly provider: SignedProvider },
  secrets: ProviderSecrets,
  freshnessSeconds: number,
): Promise<Outcome> {
  const { provider, headers, body } = delivery
  const verification = verifySignature(provider, delivery, secrets, freshnessSeconds)
  if (!verification.ok) {
    const detail = verification.status === 400 ? HEADER_MISSING : SIGNATURE_WRONG
    return { kind: 'refused', status: verification.status, reason: verification.reason, detail }
  }
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
    return { kind: 'handshake', challenge: String(members['challenge'] ?? '') }
  }
  const bodyHash = sha256Hex(body)
  const fields = signedFields(provider, headers, members)
  const external_id = fields.external_id ?? `sha256:${bodyHash}`
  const trust = { trust_mode: 'signed', verified: true, verify_detail: 'hmac-sha256 ok' } as const
  return store(ingest, delivery, { ...fields, external_id }, trust, bodyHash)
}

/** A delivery to a generic receiver: its caller is authenticated, its bytes are stored as they are. */
export async function receiveGeneric(
  ingest: Ingest,
  delivery: Delivery,
  sender: Sender,
  pathToken: string | undefined,
): Promise<Outcome> {
  const fields = genericFields(delivery.headers)
  const bodyHash = sha256Hex(delivery.body)
  if (sender.trust_mode === 'open') {
    const trust = { trust_mode: 'open', verified: false, verify_detail: null } as const
    return store(ingest, delivery, fields, trust, bodyHash)
  }
  const token = presentedToken({
    headers: delivery.headers,
    search: delivery.search,
    path: pathToken,
  })
  if (token === undefined || !tokenMatches(token, sender.token_hash)) {
    return { kind: 'refused', status: 403, reason: tokenReason(token, sender), detail: TOKEN_WRONG }
  }
  const trust = { trust_mode: 'token', verified: false, verify_detail: 'token ok' } as const
  return store(ingest, delivery, fields, trust, bodyHash)
}

const HEADER_MISSING =
  'The header X-Chat-Request-Timestamp is missing; send the time the signature was made at.'
const SIGNATURE_WRONG =
  'The signature is missing, malformed, stale or wrong; sign the exact bytes of the body with the shared secret.'
const BODY_UNREADABLE = 'The body is neither a JSON object nor a form; send one of them.'
const TOKEN_WRONG = 'The token is missing or wrong; send it as Authorization: Bearer.'

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
  trust: Pick<NewEvent, 'trust_mode' | 'verified' | 'verify_detail'>,
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
