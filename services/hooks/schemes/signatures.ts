import { createHmac, timingSafeEqual, verify, type Hmac, type KeyObject } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { JsonObject } from '../../../kernel/json.ts'
import type { Scheme } from './schemes.ts'

/** A key of HMAC, where a text stands for its UTF-8 bytes, or a public key. */
export type Key = string | Buffer | KeyObject

/**
 * Keys of one provider: all `accepted` ones verify, the current first; `retired` ones only explain
 * a mismatch.
 */
export interface Keys {
  accepted: readonly Key[]
  retired: readonly Key[]
}

/** What is signed beside the body: empty where the scheme has no such part. */
interface Stamp {
  /** The delivery's id, which stays the same when it is sent again. */
  id: string
  /** When it was signed, in Unix seconds. */
  time: string
}

type Headers = Readonly<Record<string, string>>

/** Why a delivery is not verified. */
export interface Unverified {
  status: 400 | 401
  /** For the operator; never holds a signature or a secret. */
  reason: string
}

interface Signed extends Stamp {
  signatures: readonly Buffer[]
}

const MISSING: Unverified = { status: 401, reason: 'signature missing' }
const MALFORMED: Unverified = { status: 401, reason: 'signature malformed' }

/** Which of the provider's secrets a delivery is signed with, or why it is not verified. */
export type Verification = { secret: 'current' | 'previous' } | Unverified

/**
 * The verification of a delivery whose body is still arriving. It is over bytes, before anything
 * is parsed, and part by part: hashing 25 MiB at once would hold up everybody else.
 */
interface Verifier {
  update: (part: Buffer) => void
  /** Called once, with the whole body. */
  finish: (body: Buffer) => Verification
}

/**
 * Verifies a signed delivery: its time within the window, then the signature over the bytes as
 * received. Every accepted key is tried against every signature, without early exit.
 */
export function verifySignature(
  scheme: Scheme,
  { headers, receivedAt }: { headers: IncomingHttpHeaders; receivedAt: Date },
  keys: Keys,
  freshness: number,
): Verifier {
  const presented = read(scheme, headers)
  if ('reason' in presented) return unverified(presented)
  const { time, signatures } = presented
  const stale = time === '' ? undefined : staleness(Number(time), receivedAt, freshness)
  if (stale !== undefined) return unverified({ status: 401, reason: stale })
  const prefix = signedPrefix(scheme, presented)
  const isHmac = scheme.algorithm !== 'ed25519'
  const hmacs = isHmac ? keys.accepted.map((key) => startHmac(scheme, key, prefix)) : []
  return {
    update(part) {
      for (const made of hmacs) made.update(part)
    },
    finish(body) {
      const digests = hmacs.map((made) => made.digest())
      const key = isHmac
        ? matchingKey(digests, signatures)
        : matchingPublicKey(keys.accepted, prefix, body, signatures)
      if (key >= 0) return { secret: key === 0 ? 'current' : 'previous' }
      const reason = explainMismatch(scheme, keys, prefix, body, signatures)
      return { status: 401, reason }
    },
  }
}

/** Fails whatever the body is. */
function unverified(failure: Unverified): Verifier {
  return { update: () => undefined, finish: () => failure }
}

/** Why the time that a verified body holds is outside the window; undefined within it. */
export function bodyStaleness(
  { timeMember }: Scheme,
  members: JsonObject,
  receivedAt: Date,
  freshness: number,
): string | undefined {
  const ms = timeMember === undefined ? undefined : members[timeMember]
  return typeof ms === 'number'
    ? staleness(Math.floor(ms / 1000), receivedAt, freshness)
    : undefined
}

/**
 * Signs a delivery at a time, as its sender would, and returns the headers that prove it. Only
 * some schemes sign its id. Nobody but the sender can sign by Ed25519.
 */
export function signDelivery(
  scheme: Scheme,
  { id, body }: { id: string; body: Buffer },
  key: Key,
  at: Date,
): Headers {
  const stamp = { id, time: String(Math.floor(at.getTime() / 1000)) }
  const { signature, prefix, encoding, list, timestamp } = scheme
  const made =
    prefix + startHmac(scheme, key, signedPrefix(scheme, stamp)).update(body).digest(encoding)
  const time = list?.time
  const value = time === undefined ? made : time + stamp.time + list?.separator + made
  const ids = scheme.signed.includes('{id}') ? scheme.id.headers : []
  return {
    ...sameValue(ids, id),
    ...sameValue(timestamp, stamp.time),
    ...sameValue(signature, value),
  }
}

function sameValue(names: readonly string[], value: string): Headers {
  return Object.fromEntries(names.map((name) => [name, value]))
}

/** Reads the stamp and all well-formed signatures, or says what is wrong with the headers. */
function read(scheme: Scheme, headers: IncomingHttpHeaders): Signed | Unverified {
  const { list, timestamp, signed } = scheme
  const sent = headerOf(headers, timestamp)
  if (sent === undefined && scheme.timeMissing !== undefined) {
    return { status: scheme.timeMissing, reason: 'timestamp header missing' }
  }
  const value = headerOf(headers, scheme.signature)
  if (value === undefined) return MISSING
  const ids = signed.includes('{id}') ? scheme.id.headers : []
  const id = headerOf(headers, ids)
  if (id === undefined) return { status: 401, reason: `header ${ids[0]} missing` }
  if (sent === undefined) return { status: 401, reason: `header ${timestamp[0]} missing` }
  const parts = list === undefined ? [value] : partsOf(value, list)
  const time = list?.time === undefined ? sent : onlyTime(parts, list.time)
  const signatures = parts.flatMap((part) => signatureIn(part, scheme) ?? [])
  const isStamped = ids.length === 0 || isDeliveryId(id)
  const isTimed = !signed.includes('{timestamp}') || isUnixTime(time)
  return signatures.length > 0 && isStamped && isTimed ? { id, time, signatures } : MALFORMED
}

/** The value of the first of some headers that is there; empty for no headers. */
function headerOf(headers: IncomingHttpHeaders, names: readonly string[]): string | undefined {
  if (names.length === 0) return ''
  const name = names.find((one) => headers[one] !== undefined)
  const value = name === undefined ? undefined : headers[name]
  return typeof value === 'string' ? value : undefined
}

/** The parts of a header with several signatures; none where one has another form. */
function partsOf(value: string, { separator, part: form }: NonNullable<Scheme['list']>) {
  const parts = value.split(separator)
  return parts.every((part) => form.test(part)) ? parts : []
}

/** The time among the parts of a header; empty unless there is exactly one. */
function onlyTime(parts: readonly string[], prefix: string): string {
  const [time = '', ...others] = parts.filter((part) => part.startsWith(prefix))
  return others.length === 0 ? time.slice(prefix.length) : ''
}

const SIZES: Readonly<Record<Scheme['algorithm'], number>> = {
  sha256: 32,
  sha512: 64,
  ed25519: 64,
}

/** Encoded again and compared, because `Buffer.from` leaves out in silence what it can't read. */
function signatureIn(text: string, scheme: Scheme): Buffer | undefined {
  const { prefix, encoding, algorithm } = scheme
  if (!text.startsWith(prefix)) return undefined
  const encoded = text.slice(prefix.length)
  const bytes = Buffer.from(encoded, encoding)
  return bytes.length === SIZES[algorithm] && bytes.toString(encoding) === encoded
    ? bytes
    : undefined
}

function isUnixTime(text: string): boolean {
  return /^\d{1,12}$/.test(text)
}

/**
 * Standard Webhooks asks for ids without a full stop: with one, the signed text could be divided
 * in another way.
 */
function isDeliveryId(text: string): boolean {
  return /^[\x21-\x2d\x2f-\x7e]+$/.test(text)
}

/** The signed text before the body. */
function signedPrefix({ signed }: Scheme, { id, time }: Stamp): string {
  const before = signed.slice(0, -'{body}'.length)
  if (before === '') return ''
  return before.replace(/\{(id|timestamp)\}/g, (_, name) => (name === 'id' ? id : time))
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

/** Ed25519 takes the whole text at once, which for a large one would hold up everybody else. */
const MAX_ED25519_BYTES = 1024 * 1024

/** The same for public keys; the header has one signature. */
function matchingPublicKey(
  keys: readonly Key[],
  prefix: string,
  body: Buffer,
  [signature = Buffer.of()]: readonly Buffer[],
): number {
  if (body.length > MAX_ED25519_BYTES) return -1
  const text = Buffer.concat([Buffer.from(prefix), body])
  return keys.map((key) => verify(null, text, key, signature)).indexOf(true)
}

function startHmac({ algorithm }: Scheme, key: Key, prefix: string): Hmac {
  return createHmac(algorithm, key).update(prefix)
}

/**
 * Why a signed time (Unix seconds) is outside the window, inclusive both ways; undefined inside
 * it.
 */
function staleness(time: number, receivedAt: Date, freshness: number): string | undefined {
  const age = Math.floor(receivedAt.getTime() / 1000) - time
  if (Math.abs(age) <= freshness) return undefined
  return age > 0 ? `stale by ${age - freshness} s` : `${-age - freshness} s ahead of the window`
}

/** An explanation hashes the body up to five times at once, for unknown callers. */
const MAX_EXPLAINED_BYTES = 64 * 1024
const UNEXPLAINED = 'wrong secret or altered body'

/** Why a well-formed signature does not match: tries the usual mistakes on a small body. */
function explainMismatch(
  scheme: Scheme,
  { accepted, retired }: Keys,
  prefix: string,
  body: Buffer,
  signatures: readonly Buffer[],
): string {
  const isHmac = scheme.algorithm !== 'ed25519'
  if (!isHmac && body.length > MAX_ED25519_BYTES) return 'body over 1 MiB: too large for Ed25519'
  if (body.length > MAX_EXPLAINED_BYTES) return UNEXPLAINED
  function fits(tried: readonly Key[], text: Buffer): boolean {
    if (!isHmac) return matchingPublicKey(tried, prefix, text, signatures) >= 0
    const made = tried.map((key) => startHmac(scheme, key, prefix).update(text).digest())
    return matchingKey(made, signatures) >= 0
  }
  const trimmed = accepted.map((key) =>
    typeof key === 'string' ? key.replace(/\r?\n$/, '') : key,
  )
  if (trimmed.some((key, i) => key !== accepted[i]) && fits(trimmed, body)) {
    return 'would match without the trailing newline of the configured secret'
  }
  const bare = body.at(-1) === 0x0a ? body.subarray(0, body.at(-2) === 0x0d ? -2 : -1) : undefined
  if (bare !== undefined && fits(accepted, bare)) {
    return 'would match without the trailing newline of the body'
  }
  return fits(retired, body) ? 'matches a retired secret' : UNEXPLAINED
}
