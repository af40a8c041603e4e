import type { Key, Scheme } from './scheme.ts'
import {
  createHash,
  createHmac,
  createVerify,
  timingSafeEqual,
  verify,
  type KeyObject,
} from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { memberAt, objectsOf, parseObject, type JsonObject } from '../../../../kernel/json.ts'
import { readJwt } from './jwt.ts'
import { explainMismatch } from './mismatch.ts'
import {
  signedHeaderNames,
  signedTexts,
  type Head,
  type ReadHead,
  type Stamp,
} from './signed-text.ts'

/**
 * Keys of one provider: all `accepted` ones verify, the current first; `retired` ones only explain
 * a mismatch.
 */
export interface Keys {
  accepted: readonly Key[]
  retired: readonly Key[]
}

/** Why a delivery is not verified. */
export interface Unverified {
  status: 400 | 401
  /** For the operator; never holds a signature or a secret. */
  reason: string
}

interface Signed extends Stamp {
  signatures: readonly Buffer[]
}

export const MISSING: Unverified = { status: 401, reason: 'signature missing' }
export const MALFORMED: Unverified = { status: 401, reason: 'signature malformed' }

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
  head: Head,
  keys: Keys,
  freshness: number,
): Verifier {
  if (scheme.jwt !== undefined) return verifyJwt(scheme, scheme.jwt, head, keys)
  if (scheme.signed.includes('{body}')) return verifyBytes(scheme, head, keys, freshness)
  return {
    update: () => undefined,
    finish(body) {
      if (body.length > MAX_FIELDS_BYTES) return { status: 401, reason: FIELDS_TOO_LARGE }
      const whole = { ...head, text: body.toString('utf8') }
      return verifyBytes(scheme, whole, keys, freshness).finish(Buffer.of())
    },
  }
}

/** Where fields of the body are signed, it is read before it is verified: no large one. */
const MAX_FIELDS_BYTES = 64 * 1024
const FIELDS_TOO_LARGE = 'body over 64 KiB: too large for a signature of its fields'

function verifyBytes(scheme: Scheme, head: ReadHead, keys: Keys, freshness: number): Verifier {
  const presented = read(scheme, head)
  if ('reason' in presented) return unverified(presented)
  const { time, signatures } = presented
  const seconds = secondsOf(time, scheme)
  const stale = time === '' ? undefined : staleness(seconds, head.receivedAt, freshness)
  if (stale !== undefined) return unverified({ status: 401, reason: stale })
  const [before = '', after = ''] = signedTexts(scheme, presented, head)
  const start = (key: Key): Check => {
    const check = startCheck(scheme, key, signatures)
    check.update(Buffer.from(before))
    return check
  }
  const fits = (key: Key, body: Buffer): boolean => {
    const check = start(key)
    check.update(body)
    return check.matches(Buffer.from(after))
  }
  const checks = keys.accepted.map(start)
  return {
    update(part) {
      for (const check of checks) check.update(part)
    },
    finish(body) {
      const matching = checks.map((check) => check.matches(Buffer.from(after)))
      const key = matching.indexOf(true)
      if (key >= 0) return { secret: key === 0 ? 'current' : 'previous' }
      if (scheme.algorithm === 'ed25519' && body.length > MAX_ED25519_BYTES) {
        return { status: 401, reason: 'body over 1 MiB: too large for Ed25519' }
      }
      return { status: 401, reason: explainMismatch(keys, body, fits) }
    },
  }
}

/** A token by a shared secret, whose claims hold the hash of the body. */
function verifyJwt(
  scheme: Scheme,
  { issuer, bodyHash }: NonNullable<Scheme['jwt']>,
  { headers }: Head,
  keys: Keys,
): Verifier {
  const value = firstValue(scheme.signature, headers, {})
  if (value === undefined) return unverified(MISSING)
  const jwt = readJwt(value)
  const signature = jwt && signatureIn(jwt.signature, scheme)
  if (jwt === undefined || signature === undefined) return unverified(MALFORMED)
  const text = Buffer.from(jwt.signed)
  const fits = (key: Key): boolean => startCheck(scheme, key, [signature]).matches(text)
  const hash = createHash('sha256')
  return {
    update: (part) => void hash.update(part),
    finish() {
      const key = keys.accepted.map(fits).indexOf(true)
      if (key < 0) {
        const isRetired = keys.retired.some(fits)
        return { status: 401, reason: isRetired ? 'matches a retired secret' : 'wrong secret' }
      }
      if (jwt.claims['iss'] !== issuer) return { status: 401, reason: 'a token of another issuer' }
      const isSame = jwt.claims[bodyHash] === hash.digest('hex')
      if (!isSame) return { status: 401, reason: 'altered body' }
      return { secret: key === 0 ? 'current' : 'previous' }
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

/** Reads the stamp and all well-formed signatures, or says what is wrong with the headers. */
function read(scheme: Scheme, head: ReadHead): Signed | Unverified {
  const { list, timestamp, signed } = scheme
  const members = head.text === undefined ? {} : (parseObject(head.text) ?? {})
  const valueAt = (names: readonly string[]) => firstValue(names, head.headers, members)
  const sent = valueAt(timestamp)
  if (sent === undefined && scheme.timeMissing !== undefined) {
    return { status: scheme.timeMissing, reason: 'timestamp header missing' }
  }
  const value = valueAt(scheme.signature)
  if (value === undefined) return MISSING
  const ids = signed.includes('{id}') ? scheme.id.headers : []
  const id = valueAt(ids)
  if (id === undefined) return { status: 401, reason: `header ${ids[0]} missing` }
  if (sent === undefined) return { status: 401, reason: `header ${timestamp[0]} missing` }
  const isMisread =
    signedHeaderNames(scheme, head.headers) === undefined ||
    (scheme.single !== undefined && objectsOf(memberAt(members, scheme.single)).length !== 1)
  if (isMisread) return MALFORMED
  const parts = list === undefined ? [value] : partsOf(value, list)
  const time = list?.time === undefined ? sent : onlyTime(parts, list.time)
  const signatures = parts.flatMap((part) => signatureIn(part, scheme) ?? [])
  const isStamped = ids.length === 0 || isDeliveryId(id)
  const isTimed = !signed.includes('{timestamp}') || TIMES[scheme.clock ?? 'seconds'].test(time)
  return signatures.length > 0 && isStamped && isTimed ? { id, time, signatures } : MALFORMED
}

/** The value of the first of some headers and members that is there; empty for no names. */
export function firstValue(
  names: readonly string[],
  headers: IncomingHttpHeaders,
  members: JsonObject,
): string | undefined {
  if (names.length === 0) return ''
  const values = names.map((name) =>
    name.startsWith('json:') ? memberAt(members, name.slice(5)) : headers[name],
  )
  const value = values.find((one) => one !== undefined)
  return typeof value === 'string' ? value : undefined
}

/** The parts of a header with several signatures; none where one has another form. */
function partsOf(value: string, list: NonNullable<Scheme['list']>): readonly string[] {
  const { separator, part: form = /^\S*$/, isSpaced = false } = list
  const parts = value.split(separator).map((part) => (isSpaced ? part.replace(/^ /, '') : part))
  return parts.every((part) => form.test(part)) ? parts : []
}

/** The time among the parts of a header; empty unless there is exactly one. */
function onlyTime(parts: readonly string[], prefix: string): string {
  const [time = '', ...others] = parts.filter((part) => part.startsWith(prefix))
  return others.length === 0 ? time.slice(prefix.length) : ''
}

/** Bytes of a signature, at least and at most; those of P-256 are two numbers in DER. */
const SIZES: Readonly<Record<Scheme['algorithm'], readonly [number, number]>> = {
  sha1: [20, 20],
  sha256: [32, 32],
  sha512: [64, 64],
  ed25519: [64, 64],
  p256: [8, 72],
  'rsa-sha256': [256, 512],
  'rsa-sha1': [256, 512],
}

/** Encoded again and compared, because `Buffer.from` leaves out in silence what it can't read. */
export function signatureIn(text: string, scheme: Scheme): Buffer | undefined {
  const { prefix, encoding, algorithm } = scheme
  if (!text.startsWith(prefix)) return undefined
  const encoded = text.slice(prefix.length)
  const bytes = Buffer.from(encoded, encoding)
  const [least, most] = SIZES[algorithm]
  const isWhole = bytes.length >= least && bytes.length <= most
  return isWhole && bytes.toString(encoding) === encoded ? bytes : undefined
}

/** The forms of a time; each begins with a fixed number of digits, or is digits alone. */
const TIMES = {
  seconds: /^\d{1,12}$/,
  milliseconds: /^\d{1,15}$/,
  'RFC 3339': /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z$/,
} as const

/** Not a number for a date that does not exist, which is never within the window. */
function secondsOf(time: string, { clock }: Scheme): number {
  if (clock === undefined) return Number(time)
  const ms = clock === 'milliseconds' ? Number(time) : Date.parse(time)
  return Math.floor(ms / 1000)
}

/**
 * Standard Webhooks asks for ids without a full stop: with one, the signed text could be divided
 * in another way.
 */
function isDeliveryId(text: string): boolean {
  return /^[\x21-\x2d\x2f-\x7e]+$/.test(text)
}

/** Whether a key made one of the signatures of a text, which comes part by part. */
interface Check {
  update: (part: Buffer) => void
  /** Called once, with the last part. */
  matches: (last: Buffer) => boolean
}

/** Ed25519 takes the whole text at once, which for a large one would hold up everybody else. */
const MAX_ED25519_BYTES = 1024 * 1024
/** Each reads the whole text; while keys change, a sender sends two. */
const MAX_ED25519_SIGNATURES = 4

function startCheck({ algorithm }: Scheme, key: Key, signatures: readonly Buffer[]): Check {
  if (algorithm === 'ed25519') return startEd25519(key, signatures)
  if (algorithm === 'p256') {
    const made = createVerify('sha256')
    return {
      update: (part) => void made.update(part),
      // The header has one signature.
      matches: (last) => made.update(last).verify(key as KeyObject, signatures[0] ?? Buffer.of()),
    }
  }
  const made = createHmac(algorithm, key)
  return {
    update: (part) => void made.update(part),
    matches(last) {
      const expected = made.update(last).digest()
      let found = false
      // Compares every signature in constant time, without early exit.
      for (const signature of signatures) found = timingSafeEqual(expected, signature) || found
      return found
    },
  }
}

function startEd25519(key: Key, signatures: readonly Buffer[]): Check {
  const parts: Buffer[] = []
  let bytes = 0
  const update = (part: Buffer): void => {
    bytes += part.length
    if (bytes <= MAX_ED25519_BYTES) parts.push(part)
  }
  return {
    update,
    matches(last) {
      update(last)
      if (bytes > MAX_ED25519_BYTES) return false
      const text = Buffer.concat(parts)
      const tried = signatures.slice(0, MAX_ED25519_SIGNATURES)
      return tried.some((signature) => verify(null, text, key as KeyObject, signature))
    },
  }
}

/**
 * Why a signed time (Unix seconds) is outside the window, inclusive both ways; undefined inside
 * it.
 */
export function staleness(time: number, receivedAt: Date, freshness: number): string | undefined {
  const age = Math.floor(receivedAt.getTime() / 1000) - time
  if (Math.abs(age) <= freshness) return undefined
  if (Number.isNaN(age)) return 'a time that does not exist'
  return age > 0 ? `stale by ${age - freshness} s` : `${-age - freshness} s ahead of the window`
}
