import type { IncomingHttpHeaders } from 'node:http'
import type { SecretName } from '../../db/hooks/rows.ts'
import { explainMismatch, hmac, matchingSecret, staleness, type HmacKeys } from './hmac.ts'
import type { SignedDelivery } from './signatures.ts'

/** Whether a delivery is signed as it must be; a reason never holds a signature or a secret. */
export type StandardVerification =
  | { readonly ok: true; readonly secret: SecretName }
  | { readonly ok: false; readonly reason: string }

const MALFORMED = { ok: false, reason: 'signature malformed' } as const

/**
 * Verifies a delivery by the scheme of https://www.standardwebhooks.com: the headers `webhook-id`,
 * `webhook-timestamp` and `webhook-signature` over the bytes as received, within the window. Of the signatures those of scheme `v1` count; any may match any key.
 */
export function verifyStandard(
  { headers, body, receivedAt }: SignedDelivery,
  keys: HmacKeys,
  freshnessSeconds: number,
): StandardVerification {
  const id = single(headers['webhook-id'])
  const time = single(headers['webhook-timestamp'])
  const presented = single(headers['webhook-signature'])
  if (presented === undefined) return { ok: false, reason: 'signature missing' }
  if (id === undefined) return { ok: false, reason: 'header webhook-id missing' }
  if (time === undefined) return { ok: false, reason: 'header webhook-timestamp missing' }
  const signatures = readSignatures(presented)
  if (signatures === undefined || !isId(id) || !/^\d{1,12}$/.test(time)) return MALFORMED
  const stale = staleness(time, receivedAt, freshnessSeconds)
  if (stale !== undefined) return { ok: false, reason: stale }
  const prefix = `${id}.${time}.`
  const secret = matchingSecret(keys.accepted, prefix, body, signatures)
  if (secret !== undefined) return { ok: true, secret }
  return { ok: false, reason: explainMismatch(keys, prefix, body, signatures) }
}

/** The headers of a body signed at a time; `id` is the delivery's own and stays over its repeats. */
export function signStandard(
  id: string,
  body: Buffer,
  key: Buffer,
  at: Date,
): Readonly<Record<string, string>> {
  const time = String(Math.floor(at.getTime() / 1000))
  const signature = hmac(key, `${id}.${time}.`, body).toString('base64')
  return {
    'webhook-id': id,
    'webhook-timestamp': time,
    'webhook-signature': `v1,${signature}`,
  }
}

/**
 * An id that can be signed. With a full stop in it the signed text could be divided in another way:
 * the scheme itself asks for ids without.
 */
function isId(text: string): boolean {
  return /^[\x21-\x2d\x2f-\x7e]+$/.test(text)
}

/** How a signing secret begins. */
export const SECRET_PREFIX = 'whsec_'

/** The accepted form of a signing secret, in words. */
export const SIGNING_SECRET_FORM = `"${SECRET_PREFIX}" and then 24 to 64 bytes as base64`

/** A fresh signing secret of 32 bytes, as senders take it. */
export function makeSigningSecret(random: (size: number) => Buffer): string {
  return SECRET_PREFIX + random(32).toString('base64')
}

/** The key of a signing secret, whose prefix may be missing; undefined for text of another form. */
export function signingKey(secret: string): Buffer | undefined {
  const text = secret.startsWith(SECRET_PREFIX) ? secret.slice(SECRET_PREFIX.length) : secret
  // Checked first, because `Buffer.from(x, 'base64')` leaves out what it can't read.
  if (!/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(text)) {
    return undefined
  }
  const key = Buffer.from(text, 'base64')
  return key.length >= 24 && key.length <= 64 ? key : undefined
}

/** `v1,<base64>` and signatures of other schemes, by spaces; undefined when none of `v1` is well-formed. */
function readSignatures(text: string): readonly Buffer[] | undefined {
  const parts = text.split(' ')
  // A header that came twice is joined by a comma and a space.
  if (!parts.every((part) => /^[^,]+,[^,]+$/.test(part))) return undefined
  const ours = parts.filter((part) => /^v1,[A-Za-z0-9+/]{43}=$/.test(part))
  return ours.length === 0
    ? undefined
    : ours.map((part) => Buffer.from(part.slice('v1,'.length), 'base64'))
}

function single(value: IncomingHttpHeaders[string]): string | undefined {
  return typeof value === 'string' ? value : undefined
}
