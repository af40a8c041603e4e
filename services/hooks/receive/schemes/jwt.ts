import { parseObject, type JsonObject } from '../../../../kernel/json.ts'

/** A JSON Web Token in its three parts, not verified yet. */
interface Jwt {
  /** What the signature is over. */
  signed: string
  /** As base64url. */
  signature: string
  claims: JsonObject
}

const MAX_LENGTH = 8 * 1024
const FORM = /^([\w-]+)\.([\w-]+)\.([\w-]+)$/

/**
 * Reads a token that is signed by a shared secret (HS256); undefined for any other text. A token
 * that names another algorithm, or none, is never read: its sender would choose how it is checked.
 */
export function readJwt(text: string): Jwt | undefined {
  if (text.length > MAX_LENGTH) return undefined
  const [, head = '', payload = '', signature = ''] = FORM.exec(text) ?? []
  const header = objectIn(head)
  const claims = objectIn(payload)
  if (header?.['alg'] !== 'HS256' || header['crit'] !== undefined) return undefined
  return claims && { signed: `${head}.${payload}`, signature, claims }
}

/** The object in a part of a token. */
function objectIn(part: string): JsonObject | undefined {
  return parseObject(Buffer.from(part, 'base64url').toString('utf8'))
}
