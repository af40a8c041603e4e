import { createPublicKey, X509Certificate, type KeyObject } from 'node:crypto'
import {
  objectOf,
  objectsOf,
  parseObject,
  stringOf,
  type JsonObject,
} from '../../../../kernel/json.ts'
import type { OutboundResult } from '../../../../kernel/net/outbound.ts'
import type { Fetched, KeySet, PublicKey } from './key-cache.ts'

// Public keys that are fetched from senders: bounded in time and bytes, and kept by `keepFetchedKeys`.

const TIMEOUT_MS = 5_000
/** Of a certificate with its chain, or the keys of an issuer. */
const MAX_BYTES = 128 * 1024

/** The key in the certificate at an address. */
export function certificateAt(source: string, address: string): KeySet {
  const url = new URL(address)
  return {
    name: address,
    source,
    async fetch({ get }) {
      const answer = readAnswer(await get(requestOf(url, false)), url)
      return 'problem' in answer ? answer : keyOfCertificate(answer.text, url)
    },
  }
}

function keyOfCertificate(text: string, { host }: URL): Fetched {
  try {
    const certificate = new X509Certificate(text)
    const { publicKey: key, validFromDate: from, validToDate: until } = certificate
    if (isStrongRsa(key)) return new Map([['', { key, from, until }]])
  } catch {
    // Another text.
  }
  return { problem: `${host} gave no certificate of RSA with 2,048 bits or more` }
}

function isStrongRsa({ asymmetricKeyType: type, asymmetricKeyDetails: details }: KeyObject) {
  return type === 'rsa' && (details?.modulusLength ?? 0) >= 2_048
}

/**
 * The keys of an issuer of OpenID tokens, by its discovery document. An issuer that the operator
 * named is `trusted`: it may be on a private network, with the keys on the same host.
 */
export function keysOfIssuer(source: string, issuer: string, trusted: boolean): KeySet {
  const discovery = new URL(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`)
  return {
    name: issuer,
    source,
    async fetch({ get }) {
      const found = readAnswer(await get(requestOf(discovery, trusted)), discovery)
      if ('problem' in found) return found
      const { issuer: named, jwks_uri: uri } = parseObject(found.text) ?? {}
      const url = URL.parse(stringOf(uri) ?? '')
      if (named !== issuer) return { problem: `${discovery.host} names another issuer` }
      if (url?.protocol !== 'https:' || url.username !== '' || url.password !== '') {
        return { problem: `${discovery.host} names no https:// address of its keys` }
      }
      const isOwn = trusted && url.host === discovery.host
      const answer = readAnswer(await get(requestOf(url, isOwn)), url)
      return 'problem' in answer ? answer : keysInSet(answer.text)
    },
  }
}

function keysInSet(text: string): Fetched {
  const keys = new Map<string, PublicKey>()
  for (const jwk of objectsOf(parseObject(text)?.['keys'])) {
    const key = keyOfJwk(jwk)
    const kid = stringOf(jwk['kid'])
    if (key !== undefined && kid !== undefined) keys.set(kid, { key })
  }
  return keys.size === 0 ? { problem: 'the issuer gave no key that can be used' } : keys
}

/** A key for signatures: RSA, or EC of P-256. */
function keyOfJwk(jwk: JsonObject): KeyObject | undefined {
  const { kty, use = 'sig', crv } = jwk
  if (use !== 'sig' || !(kty === 'RSA' || (kty === 'EC' && crv === 'P-256'))) return undefined
  try {
    const key = createPublicKey({ key: jwk, format: 'jwk' })
    return kty === 'EC' || isStrongRsa(key) ? key : undefined
  } catch {
    // A member is missing, or has another form.
    return undefined
  }
}

/** The key of an id, by the API of Plaid. `credentials` are `CLIENT_ID:SECRET`. */
export function keyByPlaid(
  source: string,
  address: string,
  credentials: string,
  kid: string,
): KeySet {
  const url = new URL(address)
  const [client_id, secret] = credentials.split(':')
  return {
    name: `${source} ${address} ${kid}`,
    source,
    async fetch({ post }) {
      const request = requestOf(url, false)
      const headers = { ...request.headers, 'content-type': 'application/json' }
      const body = Buffer.from(JSON.stringify({ client_id, secret, key_id: kid }))
      const answer = readAnswer(await post({ ...request, headers, body }), url)
      if ('problem' in answer) return answer
      const jwk = objectOf(parseObject(answer.text)?.['key'])
      const key = keyOfJwk(jwk)
      if (key === undefined || jwk['kid'] !== kid) return { problem: `${url.host} gave no key` }
      const { expired_at: end } = jwk
      return new Map([
        [kid, typeof end === 'number' ? { key, until: new Date(end * 1e3) } : { key }],
      ])
    },
  }
}

function requestOf(url: URL, trusted: boolean) {
  const headers = { 'user-agent': 'gatehouse', accept: '*/*' }
  // A byte more shows what is too large.
  return { url, headers, timeoutMs: TIMEOUT_MS, trusted, answerBytes: MAX_BYTES + 1 }
}

/** The text of a whole answer. */
function readAnswer(
  answer: OutboundResult,
  { host }: URL,
): { text: string } | { problem: string } {
  if (answer.kind !== 'answered') return { problem: `${host}: ${answer.reason}` }
  if (answer.status !== 200) return { problem: `${host} answered ${answer.status}` }
  if (answer.body.length > MAX_BYTES) return { problem: `${host} gave more than 128 KiB` }
  return { text: answer.body.toString('utf8') }
}
