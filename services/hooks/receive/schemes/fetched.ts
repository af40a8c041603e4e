import { createHash, verify } from 'node:crypto'
import type { Expected } from '../../../../db/hooks/receive/providers.ts'
import { entryOf, isList, parseObject, type JsonObject } from '../../../../kernel/json.ts'
import { certificateAt, keyByPlaid, keysOfIssuer } from './fetched-keys.ts'
import type { FetchedKeys, KeySet, PublicKey } from './key-cache.ts'
import { isSignedBy, readKeyedJwt, type KeyedJwt } from './jwt.ts'
import type { AddressForm, CertificateKey, Scheme } from './scheme.ts'
import { signedTexts, type Head } from './signed-text.ts'
import {
  firstValue,
  MALFORMED,
  MISSING,
  signatureIn,
  staleness,
  type Keys,
  type Unverified,
} from './signatures.ts'

// Verification by keys that are the sender's own. The address of a key is compared to the letter
// before it is fetched, and what is signed is what is checked.

/** What a delivery was verified with; null where the secret proves nothing. */
type FetchedVerification =
  | { secret: 'current' | 'previous' | null; algorithm: Scheme['algorithm'] }
  | Unverified

interface Source {
  /** The provider whose delivery it is. */
  provider: string
  fetchedKeys: FetchedKeys
  keys: Keys
  freshness: number
}

/** The verification of a delivery whose body is still arriving. */
interface FetchedVerifier {
  update: (part: Buffer) => void
  /** Called once, with the whole body. Throws 503 where the key can't be had. */
  finish: (body: Buffer) => Promise<FetchedVerification>
}

/** Verifies a delivery by a key that is fetched from its sender. */
export function verifyFetched(scheme: Scheme, head: Head, source: Source): FetchedVerifier {
  const { fetched } = scheme
  const hash = createHash('sha256')
  return {
    update: (part) => void (fetched?.kind === 'plaid' && hash.update(part)),
    async finish(body) {
      if (fetched?.kind === 'certificate')
        return byCertificate(scheme, fetched, head, body, source)
      return byToken(scheme, head, hash.digest('hex'), source)
    },
  }
}

/** It is read before it is verified, and hashed at once. A message of SNS has 256 KiB at most. */
const MAX_BYTES = 2 * 1024 * 1024

async function byCertificate(
  scheme: Scheme,
  fetched: CertificateKey,
  head: Head,
  body: Buffer,
  { provider, fetchedKeys, keys }: Source,
): Promise<FetchedVerification> {
  if (body.length > MAX_BYTES) return refused('body over 2 MiB: too large for this scheme')
  const text = body.toString('utf8')
  const members = parseObject(text) ?? {}
  const value = firstValue(scheme.signature, head.headers, members)
  const address = firstValue([fetched.at], head.headers, members)
  if (value === undefined || address === undefined) return MISSING
  const { versions, subscription } = fetched
  const algorithm =
    versions === undefined
      ? scheme.algorithm
      : entryOf(versions.algorithms, members[versions.member])
  const signature = algorithm && signatureIn(value, { ...scheme, algorithm })
  if (algorithm === undefined || signature === undefined) return MALFORMED
  if (!isAddressOf(address, fetched.from)) return refused('certificate of another address')
  const key = await fetchedKeys.find(certificateAt(provider, address), '')
  if (key === undefined) return refused('no certificate')
  const unusable = unusableAt(key, head.receivedAt)
  if (unusable !== undefined) return refused(unusable)
  const fits = (secret: string): boolean => {
    const signed = signedTexts(scheme, { id: '', time: '' }, { ...head, text, body, secret })
    const hash = algorithm === 'rsa-sha1' ? 'sha1' : 'sha256'
    return verify(hash, Buffer.from(signed.join('')), key.key, signature)
  }
  const secrets = scheme.secret === 'none' ? [''] : keys.accepted.map(String)
  const at = secrets.map(fits).indexOf(true)
  if (at < 0) {
    const isRetired = keys.retired.map(String).some(fits)
    if (scheme.secret === 'none') return refused('altered body, or signed by another key')
    return refused(isRetired ? 'matches a retired secret' : 'wrong secret or altered body')
  }
  if (subscription !== undefined && !isTopicOf(scheme, members)) return refused('topic not named')
  const secret = scheme.secret === 'none' ? null : at === 0 ? 'current' : 'previous'
  return { secret, algorithm }
}

/** Whether a verified message is of a topic that the operator named, or asks to be confirmed. */
function isTopicOf({ fetched, expected }: Scheme, members: JsonObject): boolean {
  if (fetched?.kind !== 'certificate' || fetched.subscription === undefined) return false
  const { topic, type, asks } = fetched.subscription
  return members[type] === asks || expected?.topics?.includes(String(members[topic])) === true
}

/** A confirmation that a verified message asks for. */
export interface Confirmation {
  topic: string
  /** The address that confirms it. */
  url: URL
}

/** What a verified message asks to be confirmed; undefined for any other one. */
export function confirmationIn(scheme: Scheme, members: JsonObject): Confirmation | undefined {
  const { fetched } = scheme
  if (fetched?.kind !== 'certificate' || fetched.subscription === undefined) return undefined
  const { topic: at, type, asks, url, from } = fetched.subscription
  const { [at]: topic, [url]: address } = members
  if (members[type] !== asks || typeof topic !== 'string') return undefined
  if (typeof address !== 'string' || !isAddressOf(address, from)) return undefined
  return { topic, url: new URL(address) }
}

async function byToken(
  scheme: Scheme,
  head: Head,
  bodyHash: string,
  source: Source,
): Promise<FetchedVerification> {
  const value = firstValue(scheme.signature, head.headers, {})
  if (value === undefined) return MISSING
  const token = value.slice(scheme.prefix.length)
  const isPrefixed = value.toLowerCase().startsWith(scheme.prefix.toLowerCase())
  const jwt = isPrefixed ? readKeyedJwt(token) : undefined
  const set = jwt && keysOf(scheme, jwt, source)
  if (jwt === undefined || set === undefined) return MALFORMED
  const key = await source.fetchedKeys.find(set, jwt.kid)
  if (key === undefined) return refused('token by an unknown key')
  const unusable = unusableAt(key, head.receivedAt)
  if (unusable !== undefined) return refused(unusable)
  if (!isSignedBy(jwt, key.key)) return refused('token altered, or by another key')
  const { fetched } = scheme
  const problem =
    fetched?.kind === 'plaid'
      ? wrongBody(jwt, fetched.bodyHash, bodyHash, head.receivedAt, source.freshness)
      : wrongClaims(jwt, scheme, head.receivedAt)
  return problem === undefined ? { secret: null, algorithm: scheme.algorithm } : refused(problem)
}

function keysOf({ fetched, expected }: Scheme, jwt: KeyedJwt, { provider, keys }: Source) {
  if (fetched?.kind === 'openid') {
    const { issuer = expected?.issuer } = fetched
    const isTrusted = fetched.issuer === undefined
    return issuer === undefined ? undefined : keysOfIssuer(provider, issuer, isTrusted)
  }
  const [credentials] = keys.accepted
  if (fetched?.kind !== 'plaid' || jwt.algorithm !== 'ES256') return undefined
  return keyByPlaid(provider, fetched.address, String(credentials), jwt.kid) satisfies KeySet
}

function wrongBody(
  { claims }: KeyedJwt,
  member: string,
  hash: string,
  receivedAt: Date,
  freshness: number,
): string | undefined {
  const { iat, [member]: signed } = claims
  if (typeof iat !== 'number') return 'token without a time'
  return staleness(iat, receivedAt, freshness) ?? (signed === hash ? undefined : 'altered body')
}

/** Clocks of issuers differ from ours by this much at most, in seconds. */
const LEEWAY_S = 60

function wrongClaims(
  { claims }: KeyedJwt,
  { fetched, expected = {} }: Scheme,
  receivedAt: Date,
): string | undefined {
  const issuer = (fetched?.kind === 'openid' ? fetched.issuer : undefined) ?? expected.issuer
  const { iss, aud, exp, nbf = 0, iat = 0 } = claims
  const now = receivedAt.getTime() / 1_000
  if (iss !== issuer) return 'token of another issuer'
  const audiences = isList(aud) ? aud : [aud]
  if (expected.audience === undefined || !audiences.includes(expected.audience)) {
    return 'token for another audience'
  }
  if (typeof exp !== 'number' || now >= exp + LEEWAY_S) return 'token expired'
  const isEarly = [nbf, iat].some((from) => typeof from !== 'number' || from > now + LEEWAY_S)
  if (isEarly) return 'token of a later time'
  return isSubject(claims, expected) ? undefined : 'token of another subject'
}

function isSubject({ sub, email, email_verified }: JsonObject, { subject }: Expected): boolean {
  if (subject === undefined || sub === subject) return true
  return email === subject && email_verified === true
}

function refused(reason: string): Unverified {
  return { status: 401, reason }
}

function unusableAt({ from, until }: PublicKey, at: Date): string | undefined {
  if (until !== undefined && at > until) return "the sender's key has expired"
  return from !== undefined && at < from ? "the sender's key is not valid yet" : undefined
}

/** Whether an address is one of those that a row allows: its text, before anything is parsed. */
function isAddressOf(address: string, { host, path }: AddressForm): boolean {
  const [, hostText = '', pathText = ''] = /^https:\/\/([^/]*)(\/.*)$/s.exec(address) ?? []
  return host.test(hostText) && path.test(pathText)
}
