import type { IncomingHttpHeaders } from 'node:http'
import { hmac, type HmacKeys } from './hmac.ts'
import {
  isUnixTime,
  MALFORMED,
  MISSING,
  singleHeader,
  startVerifier,
  type Presented,
  type SignedHead,
  type Verifier,
} from './signed-delivery.ts'

/**
 * Verifies a delivery by the scheme of https://www.standardwebhooks.com: the headers `webhook-id`,
 * `webhook-timestamp` and `webhook-signature` over the bytes as received, within the window. Of the signatures those of scheme `v1` count; any may match any key.
 */
export function verifyStandard(
  { headers, receivedAt }: SignedHead,
  keys: HmacKeys,
  freshnessSeconds: number,
): Verifier {
  return startVerifier(read(headers), receivedAt, keys, freshnessSeconds)
}

function read(headers: IncomingHttpHeaders): Presented {
  const id = singleHeader(headers, 'webhook-id')
  const time = singleHeader(headers, 'webhook-timestamp')
  const value = singleHeader(headers, 'webhook-signature')
  if (value === undefined) return MISSING
  if (id === undefined) return { status: 401, reason: 'header webhook-id missing' }
  if (time === undefined) return { status: 401, reason: 'header webhook-timestamp missing' }
  const signatures = readSignatures(value)
  if (signatures === undefined || !isId(id) || !isUnixTime(time)) return MALFORMED
  return { time, prefix: signedPrefix(id, time), signatures }
}

function signedPrefix(id: string, time: string): string {
  return `${id}.${time}.`
}

/** The headers of a body signed at a time; `id` is the delivery's own and stays over its repeats. */
export function signStandard(
  id: string,
  body: Buffer,
  key: Buffer,
  at: Date,
): Readonly<Record<string, string>> {
  const time = String(Math.floor(at.getTime() / 1000))
  const signature = hmac(key, signedPrefix(id, time), body).toString('base64')
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
