import type { IncomingHttpHeaders } from 'node:http'
import {
  explainMismatch,
  hmac,
  staleness,
  startHmacs,
  type HmacKey,
  type HmacKeys,
} from './hmac.ts'

/** The ways in which deliveries are signed: the three signed providers' own, and Standard Webhooks. */
export type SchemeName = 'code_host' | 'payments' | 'chat' | 'standard_webhooks'

/** What is signed beside the body: empty where the scheme has no such part. */
interface Stamp {
  /** The delivery's id, which stays the same when it is sent again. */
  readonly id: string
  /** When it was signed, in Unix seconds. */
  readonly time: string
}

type Headers = Readonly<Record<string, string>>

interface Unverified {
  readonly status: 400 | 401
  /** For the operator; never holds a signature or a secret. */
  readonly reason: string
}

/** One way to sign with HMAC-SHA256. */
interface Scheme {
  /** Reads the stamp and all well-formed signatures, or says what is wrong with the headers. */
  readonly read: (
    headers: IncomingHttpHeaders,
  ) => (Stamp & { readonly signatures: readonly Buffer[] }) | Unverified
  /** The signed text before the body. */
  readonly prefix: (stamp: Stamp) => string
  /** Headers, in lower case, that `read` and the sender's own library accept. */
  readonly write: (signature: Buffer, stamp: Stamp) => Headers
}

const MISSING: Unverified = { status: 401, reason: 'signature missing' }
const MALFORMED: Unverified = { status: 401, reason: 'signature malformed' }

/** A header's neutral name, which wins when both are present, and the real sender's. */
type Names = readonly [neutral: string, real: string]

const CODE_HOST_SIGNATURE: Names = ['x-codehost-signature-256', 'x-hub-signature-256']
const PAYMENTS_SIGNATURE: Names = ['payments-signature', 'stripe-signature']
const CHAT_SIGNATURE: Names = ['x-chat-signature', 'x-slack-signature']
const CHAT_TIME: Names = ['x-chat-request-timestamp', 'x-slack-request-timestamp']

/** hooks.md section 5, and https://www.standardwebhooks.com. */
const SCHEMES: Readonly<Record<SchemeName, Scheme>> = {
  code_host: {
    read(headers) {
      const value = headerOf(headers, ...CODE_HOST_SIGNATURE)
      if (value === undefined) return MISSING
      const signature = hexAfter('sha256=', value)
      return signature === undefined ? MALFORMED : { id: '', time: '', signatures: [signature] }
    },
    prefix: () => '',
    write: (signature) => both(CODE_HOST_SIGNATURE, `sha256=${signature.toString('hex')}`),
  },

  payments: {
    /** `t=<unix>,v1=<hex>[,v1=…]`: exactly one `t` of 1–12 digits; other schemes (`v0`) are decoys. */
    read(headers) {
      const value = headerOf(headers, ...PAYMENTS_SIGNATURE)
      if (value === undefined) return MISSING
      const times: string[] = []
      const signatures: Buffer[] = []
      for (const part of value.split(',')) {
        if (part.startsWith('t=')) times.push(part.slice(2))
        const signature = hexAfter('v1=', part)
        if (signature !== undefined) signatures.push(signature)
      }
      const [time] = times
      if (time === undefined || times.length > 1 || !isUnixTime(time)) return MALFORMED
      if (signatures.length === 0 || /\s/.test(value)) return MALFORMED
      return { id: '', time, signatures }
    },
    prefix: ({ time }) => `${time}.`,
    write: (signature, { time }) =>
      both(PAYMENTS_SIGNATURE, `t=${time},v1=${signature.toString('hex')}`),
  },

  chat: {
    read(headers) {
      const time = headerOf(headers, ...CHAT_TIME)
      if (time === undefined) return { status: 400, reason: 'timestamp header missing' }
      const value = headerOf(headers, ...CHAT_SIGNATURE)
      if (value === undefined) return MISSING
      const signature = hexAfter('v0=', value)
      if (signature === undefined || !isUnixTime(time)) return MALFORMED
      return { id: '', time, signatures: [signature] }
    },
    prefix: ({ time }) => `v0:${time}:`,
    write: (signature, { time }) => ({
      ...both(CHAT_TIME, time),
      ...both(CHAT_SIGNATURE, `v0=${signature.toString('hex')}`),
    }),
  },

  standard_webhooks: {
    read(headers) {
      const id = headerOf(headers, 'webhook-id')
      const time = headerOf(headers, 'webhook-timestamp')
      const value = headerOf(headers, 'webhook-signature')
      if (value === undefined) return MISSING
      if (id === undefined) return { status: 401, reason: 'header webhook-id missing' }
      if (time === undefined) return { status: 401, reason: 'header webhook-timestamp missing' }
      const signatures = base64Signatures(value)
      if (signatures.length === 0 || !isDeliveryId(id) || !isUnixTime(time)) return MALFORMED
      return { id, time, signatures }
    },
    prefix: ({ id, time }) => `${id}.${time}.`,
    write: (signature, { id, time }) => ({
      'webhook-id': id,
      'webhook-timestamp': time,
      'webhook-signature': `v1,${signature.toString('base64')}`,
    }),
  },
}

/** Whether a delivery is signed as it must be, and by which of the provider's secrets. */
export type Verification =
  | { readonly ok: true; readonly secret: 'current' | 'previous' }
  | ({ readonly ok: false } & Unverified)

/** The part of a signed delivery that comes before its body. */
export interface SignedHead {
  readonly headers: IncomingHttpHeaders
  readonly receivedAt: Date
}

/**
 * The verification of a delivery whose body is still arriving. It is over bytes, before anything is
 * parsed, and part by part: hashing 25 MiB at once would hold up everybody else.
 */
export interface Verifier {
  readonly update: (part: Buffer) => void
  /** Called once, with the whole body. */
  readonly finish: (body: Buffer) => Verification
}

/**
 * Verifies a signed delivery: its time within the window, then HMAC-SHA256 over the bytes as
 * received. Every accepted key is tried against every signature, without early exit.
 */
export function verifySignature(
  scheme: SchemeName,
  { headers, receivedAt }: SignedHead,
  keys: HmacKeys,
  freshnessSeconds: number,
): Verifier {
  const { read, prefix: prefixOf } = SCHEMES[scheme]
  const presented = read(headers)
  if ('reason' in presented) return unverified(presented)
  const { time, signatures } = presented
  const stale = time === '' ? undefined : staleness(time, receivedAt, freshnessSeconds)
  if (stale !== undefined) return unverified({ status: 401, reason: stale })
  const prefix = prefixOf(presented)
  const hmacs = startHmacs(keys.accepted, prefix)
  return {
    update: hmacs.update,
    finish(body) {
      const secret = hmacs.match(signatures)
      if (secret !== undefined) return { ok: true, secret }
      return { ok: false, status: 401, reason: explainMismatch(keys, prefix, body, signatures) }
    },
  }
}

/** Fails whatever the body is. */
function unverified(failure: Unverified): Verifier {
  return { update: () => undefined, finish: () => ({ ok: false, ...failure }) }
}

/** A delivery to be signed; only some schemes sign its id. */
export interface Unsigned {
  readonly id: string
  readonly body: Buffer
}

/** Signs a delivery at a time, as its sender would: gives the headers that prove it. */
export function signDelivery(
  scheme: SchemeName,
  { id, body }: Unsigned,
  key: HmacKey,
  at: Date,
): Headers {
  const { prefix, write } = SCHEMES[scheme]
  const stamp = { id, time: String(Math.floor(at.getTime() / 1000)) }
  return write(hmac(key, prefix(stamp), body), stamp)
}

/** The value of a header under one of its names; undefined when it has none. */
function headerOf(headers: IncomingHttpHeaders, name: string, or = name): string | undefined {
  const value = headers[name] ?? headers[or]
  return typeof value === 'string' ? value : undefined
}

function both([neutral, real]: Names, value: string): Headers {
  return { [neutral]: value, [real]: value }
}

function isUnixTime(text: string): boolean {
  return /^\d{1,12}$/.test(text)
}

/**
 * Standard Webhooks asks for ids without a full stop: with one, the signed text could be divided in
 * another way.
 */
function isDeliveryId(text: string): boolean {
  return /^[\x21-\x2d\x2f-\x7e]+$/.test(text)
}

/** 32 bytes after a prefix; checked first, because `Buffer.from(x, 'hex')` truncates silently. */
function hexAfter(prefix: string, text: string): Buffer | undefined {
  if (!text.startsWith(prefix)) return undefined
  const hex = text.slice(prefix.length)
  return /^[0-9a-f]{64}$/.test(hex) ? Buffer.from(hex, 'hex') : undefined
}

/** Well-formed signatures among `v1,<base64>` and those of other schemes, separated by spaces. */
function base64Signatures(text: string): readonly Buffer[] {
  const parts = text.split(' ')
  // A header that came twice is joined by a comma and a space.
  if (!parts.every((part) => /^[^,]+,[^,]+$/.test(part))) return []
  return parts
    .filter((part) => /^v1,[A-Za-z0-9+/]{43}=$/.test(part))
    .map((part) => Buffer.from(part.slice('v1,'.length), 'base64'))
}
