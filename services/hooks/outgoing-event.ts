import type { StoredEvent } from '../../db/hooks/rows.ts'
import { outgoingHeaders } from './outgoing-headers.ts'
import { signBody } from './signatures.ts'
import { isSignedProvider, type SigningSecrets } from './signing-secrets.ts'

/** Why an event can't be signed again, in words. */
export const NO_SECRET =
  'the secret of the sender is not configured, so the body cannot be signed again'

/**
 * The headers with which an event is sent on: its content type, the sender's own ones, and for a
 * sender that signs a signature of the time `at`. Undefined without the secret for that.
 */
export function headersToSend(
  event: StoredEvent,
  secrets: SigningSecrets,
  at: Date,
): Readonly<Record<string, string>> | undefined {
  const signature = signAgain(event, secrets, at)
  if (signature === undefined) return undefined
  const { content_type, headers } = event
  return {
    ...(content_type !== null && { 'content-type': content_type }),
    ...outgoingHeaders(headers),
    ...signature,
  }
}

/** Fresh signature headers of an event whose sender signs; undefined without its secret. */
function signAgain(
  { provider, payload }: StoredEvent,
  secrets: SigningSecrets,
  at: Date,
): Readonly<Record<string, string>> | undefined {
  if (!isSignedProvider(provider)) return {}
  const [current] = secrets.of(provider)?.accepted ?? []
  return current === undefined ? undefined : signBody(provider, payload, current, at)
}
