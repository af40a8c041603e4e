import type { ClaimedEvent, DestinationTarget } from '../../../db/hooks/destinations.ts'
import { headersToSend, NO_SECRET, unsignedHeaders, type Signers } from '../replays/replays.ts'
import { signDelivery } from '../schemes/signatures.ts'
import { openCredentials } from './credentials.ts'

/** What is sent of an event to a destination. */
export interface Outgoing {
  headers: Readonly<Record<string, string>>
  body: Buffer
  /** The headers that sign it. */
  signature: Readonly<Record<string, string>>
  /** The credentials among the headers, as texts that must not be kept of an answer. */
  credentials: readonly string[]
}

/**
 * What is sent of an event: its body and headers, with the signature and the credentials of the
 * destination. Without a signature of its own the provider's secret signs. `key` is what the
 * receiver knows the delivery by.
 */
export function outgoingOf(
  signers: Signers,
  target: DestinationTarget,
  event: ClaimedEvent,
  { key, at }: { key: string; at: Date },
): Outgoing | { problem: string } {
  const opened = openCredentials(signers.secrets, target)
  if ('problem' in opened) return opened
  const { sign, texts: credentials } = opened
  const { payload: body } = event
  const own = { ...opened.headers, 'idempotency-key': key }
  if (sign !== undefined) {
    const signature = signDelivery(sign.scheme, { id: key, body }, sign.key, at)
    const headers = { ...unsignedHeaders(event, signers), ...own, ...signature }
    return { headers, body, signature, credentials }
  }
  const signed = headersToSend(event, signers, at)
  if (signed === undefined) return { problem: NO_SECRET }
  const { all, signature } = signed
  return { headers: { ...all, ...own }, body, signature, credentials }
}
