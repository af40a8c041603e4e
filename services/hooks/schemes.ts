import { createHmac, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'

/** A key of HMAC-SHA256: a text stands for its UTF-8 bytes. */
type HmacKey = string | Buffer

/**
 * Keys of one provider: all `accepted` ones verify, the current first; `retired` ones only explain
 * a mismatch.
 */
export interface HmacKeys {
  readonly accepted: readonly HmacKey[]
  readonly retired: readonly HmacKey[]
}

/**
 * The ways in which deliveries are signed: the three signed providers' own, and Standard Webhooks.
 */
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
    /**
     * `t=<unix>,v1=<hex>[,v1=…]`: exactly one `t` of 1–12 digits; other schemes (`v0`) are decoys.
     */
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

/** Which of the provider's secrets a delivery is signed with, or why it is not verified. */
export type Verification = { readonly secret: 'current' | 'previous' } | Unverified

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
  { headers, receivedAt }: { readonly headers: IncomingHttpHeaders; readonly receivedAt: Date },
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
  const hmacs = keys.accepted.map((key) => createHmac('sha256', key).update(prefix))
  return {
    update(part) {
      for (const made of hmacs) made.update(part)
    },
    finish(body) {
      const expected = hmacs.map((made) => made.digest())
      const key = matchingKey(expected, signatures)
      if (key >= 0) return { secret: key === 0 ? 'current' : 'previous' }
      return { status: 401, reason: explainMismatch(keys, prefix, body, signatures) }
    },
  }
}

/** Fails whatever the body is. */
function unverified(failure: Unverified): Verifier {
  return { update: () => undefined, finish: () => failure }
}

/**
 * Signs a delivery at a time, as its sender would, and returns the headers that prove it. Only some
 * schemes sign its id.
 */
export function signDelivery(
  scheme: SchemeName,
  { id, body }: { readonly id: string; readonly body: Buffer },
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

/**
 * Index of the key whose HMAC is one of the signatures, -1 for none. Compares every pair in
 * constant time, without early exit.
 */
function matchingKey(hmacs: readonly Buffer[], signatures: readonly Buffer[]): number {
  const fits = hmacs.map((expected) => {
    let found = false
    for (const signature of signatures) found = timingSafeEqual(expected, signature) || found
    return found
  })
  return fits.indexOf(true)
}

function hmac(key: HmacKey, prefix: string, body: Buffer): Buffer {
  return createHmac('sha256', key).update(prefix).update(body).digest()
}

function matches(
  keys: readonly HmacKey[],
  prefix: string,
  body: Buffer,
  signatures: readonly Buffer[],
): boolean {
  const hmacs = keys.map((key) => hmac(key, prefix, body))
  return matchingKey(hmacs, signatures) >= 0
}

/**
 * Why a signed time (Unix seconds) is outside the window, inclusive both ways; undefined inside it.
 */
function staleness(time: string, receivedAt: Date, freshness: number): string | undefined {
  const age = Math.floor(receivedAt.getTime() / 1000) - Number(time)
  if (Math.abs(age) <= freshness) return undefined
  return age > 0 ? `stale by ${age - freshness} s` : `${-age - freshness} s ahead of the window`
}

/** An explanation hashes the body up to five times at once, for unknown callers. */
const MAX_EXPLAINED_BYTES = 64 * 1024
const UNEXPLAINED = 'wrong secret or altered body'

/** Why a well-formed signature does not match: tries the usual mistakes on a small body. */
function explainMismatch(
  { accepted, retired }: HmacKeys,
  prefix: string,
  body: Buffer,
  signatures: readonly Buffer[],
): string {
  if (body.length > MAX_EXPLAINED_BYTES) return UNEXPLAINED
  const trimmed = accepted.map((key) => (typeof key === 'string' ? key.replace(/\r?\n$/, '') : key))
  if (trimmed.some((key, i) => key !== accepted[i]) && matches(trimmed, prefix, body, signatures)) {
    return 'would match without the trailing newline of the configured secret'
  }
  const bare = body.at(-1) === 0x0a ? body.subarray(0, body.at(-2) === 0x0d ? -2 : -1) : undefined
  if (bare !== undefined && matches(accepted, prefix, bare, signatures)) {
    return 'would match without the trailing newline of the body'
  }
  if (matches(retired, prefix, body, signatures)) return 'matches a retired secret'
  return UNEXPLAINED
}
