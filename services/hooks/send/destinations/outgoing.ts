import type { DestinationTarget } from '../../../../db/hooks/send/destinations.ts'
import type { StoredEvent } from '../../../../db/hooks/log/events.ts'
import {
  headersToSend,
  loopMark,
  NO_SECRET,
  replayRequest,
  unsignedHeaders,
  type EventRequest,
  type Problem,
  type Signers,
} from '../replays/attempt.ts'
import { signDelivery } from '../../receive/schemes/signing.ts'
import { openCredentials, type Credentials } from './credentials.ts'
import { fillTemplate } from './template.ts'

/** What is known of a delivery beside its event. */
interface Delivery {
  /** What the receiver knows it by. */
  key: string
  at: Date
}

/**
 * What is sent of an event: its body and headers, with the signature and the credentials of the
 * destination. Without a signature of its own the provider's secret signs. A body that is made by a
 * template is signed by the destination alone, and has none of the event's headers.
 */
export function requestOf(
  signers: Signers,
  target: DestinationTarget,
  event: StoredEvent,
  delivery: Delivery,
): EventRequest | Problem {
  const url = new URL(target.url)
  if (target.kind === 'replay') return replayRequest(signers, event, url, delivery.at)
  const credentials = openCredentials(signers.secrets, target)
  if ('problem' in credentials) return credentials
  const own = { ...credentials.headers, 'idempotency-key': delivery.key }
  const { sign, texts } = credentials
  if (target.body_template !== null) {
    const made = fillTemplate(target.body_template, url, event)
    const signature = signatureOf(sign, made.body, delivery)
    const headers = { ...OF_TEMPLATE, ...loopMark(event, signers), ...own, ...signature }
    return { ...made, headers, signature, credentials: texts }
  }
  const { payload: body } = event
  if (sign !== undefined) {
    const signature = signatureOf(sign, body, delivery)
    const headers = { ...unsignedHeaders(event, signers), ...own, ...signature }
    return { url, headers, body, signature, credentials: texts }
  }
  const signed = headersToSend(event, signers, delivery.at, delivery.key)
  if (signed === undefined) return { problem: NO_SECRET }
  const { all, signature } = signed
  return { url, headers: { ...all, ...own }, body, signature, credentials: texts }
}

/** Services that many programs call may refuse a request that names none. */
const OF_TEMPLATE = { 'content-type': 'application/json', 'user-agent': 'gatehouse' }

function signatureOf(sign: Credentials['sign'], body: Buffer, { key: id, at }: Delivery) {
  return sign === undefined ? {} : signDelivery(sign.scheme, { id, body }, sign.key, at)
}
