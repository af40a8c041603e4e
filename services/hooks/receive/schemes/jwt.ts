import { verify, type KeyObject } from 'node:crypto'
import { parseObject, stringOf, type JsonObject } from '../../../../kernel/json.ts'

/** A JSON Web Token in its three parts, not verified yet. */
interface Jwt {
  /** What the signature is over. */
  signed: string
  /** As base64url. */
  signature: string
  claims: JsonObject
}

/** A token that is signed by a key of its sender. */
export interface KeyedJwt extends Jwt {
  algorithm: 'RS256' | 'ES256'
  /** The id of the key. */
  kid: string
}

const MAX_LENGTH = 8 * 1024
const MAX_ID_LENGTH = 256
const FORM = /^([\w-]+)\.([\w-]+)\.([\w-]+)$/

/**
 * Reads a token that is signed by a shared secret (HS256); undefined for any other text. A token
 * that names another algorithm, or none, is never read: its sender would choose how it is checked.
 */
export function readJwt(text: string): Jwt | undefined {
  const jwt = partsOf(text)
  return jwt?.header['alg'] === 'HS256' ? jwt : undefined
}

/**
 * Reads a token that is signed by a private key and names it; undefined for any other text. HS256
 * is never read: the public key, which all know, would be its secret.
 */
export function readKeyedJwt(text: string): KeyedJwt | undefined {
  const jwt = partsOf(text)
  const algorithm = jwt?.header['alg']
  const kid = stringOf(jwt?.header['kid']) ?? ''
  if (jwt === undefined || (algorithm !== 'RS256' && algorithm !== 'ES256')) return undefined
  return kid === '' || kid.length > MAX_ID_LENGTH ? undefined : { ...jwt, algorithm, kid }
}

/** Whether a key has signed a token; a key of another kind than its algorithm has not. */
export function isSignedBy({ algorithm, signed, signature }: KeyedJwt, key: KeyObject): boolean {
  const isEs = algorithm === 'ES256'
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = key
  if (isEs ? details?.namedCurve !== 'prime256v1' : type !== 'rsa') return false
  const bytes = Buffer.from(signature, 'base64url')
  // Encoded again and compared, because `Buffer.from` leaves out in silence what it can't read.
  if (bytes.toString('base64url') !== signature) return false
  return verify('sha256', Buffer.from(signed), { key, dsaEncoding: 'ieee-p1363' }, bytes)
}

function partsOf(text: string): (Jwt & { header: JsonObject }) | undefined {
  if (text.length > MAX_LENGTH) return undefined
  const [, head = '', payload = '', signature = ''] = FORM.exec(text) ?? []
  const header = objectIn(head)
  const claims = objectIn(payload)
  if (header === undefined || claims === undefined || header['crit'] !== undefined)
    return undefined
  return { header, claims, signed: `${head}.${payload}`, signature }
}

/** The object in a part of a token. */
function objectIn(part: string): JsonObject | undefined {
  return parseObject(Buffer.from(part, 'base64url').toString('utf8'))
}
