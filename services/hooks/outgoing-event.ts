import type { StoredEvent } from '../../db/hooks/rows.ts'
import { withStoredType } from './event-fields.ts'
import { outgoingHeaders } from './outgoing-headers.ts'
import type { Registry } from './registry.ts'
import { isSignedProvider, type SigningSecrets } from './secrets.ts'
import { signDelivery } from './schemes.ts'

/** Where the current secrets of senders that sign are found: in the configuration, or stored. */
export interface Signers {
  readonly secrets: SigningSecrets
  readonly registry: Pick<Registry, 'provider'>
}

/** Why an event can't be signed again, in words. */
export const NO_SECRET =
  'the secret of the sender is not configured, so the body cannot be signed again'

/**
 * The headers with which an event is sent on: its content type, the sender's own ones, and for a
 * sender that signs a signature of the time `at`, never under another type than the stored one.
 * Undefined without the secret for that.
 */
export function headersToSend(
  event: StoredEvent,
  signers: Signers,
  at: Date,
): Readonly<Record<string, string>> | undefined {
  const signature = signAgain(event, signers, at)
  if (signature === undefined) return undefined
  const { content_type, headers } = event
  return {
    ...(content_type !== null && { 'content-type': content_type }),
    ...outgoingHeaders(withStoredType(headers, event)),
    ...signature,
  }
}

/**
 * Fresh signature headers with the sender's current secret: none for an event that was not signed;
 * undefined without the secret.
 */
function signAgain(
  { id, provider, trust_mode, payload: body, external_id }: StoredEvent,
  { secrets, registry }: Signers,
  at: Date,
): Readonly<Record<string, string>> | undefined {
  if (isSignedProvider(provider)) {
    const [key] = secrets.of(provider)?.accepted ?? []
    return key === undefined ? undefined : signDelivery(provider, { id: '', body }, key, at)
  }
  if (trust_mode !== 'signed') return {}
  const stored = registry.provider(provider)?.signing_secret ?? null
  const found = secrets.keyIn(stored, provider)
  if ('problem' in found) return undefined
  // A delivery id that was too long to be kept is represented by a hash, which holds no full stop.
  const delivery = { id: external_id ?? `event-${id}`, body }
  return signDelivery('standard_webhooks', delivery, found.key, at)
}
