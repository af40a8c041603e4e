import { createPublicKey, type KeyObject } from 'node:crypto'
import type { RandomBytes } from '../../../../kernel/tokens.ts'
import { schemeNamed } from './schemes.ts'
import type { Key } from './scheme.ts'

// The secrets of generic providers as texts: fresh ones, and the keys in them.

/** A fresh token: 32 bytes as base64url. `random` is the source of bytes. */
export function makeToken(random: RandomBytes): string {
  return random(32).toString('base64url')
}

/**
 * A name that nobody guesses, 80 random bits: whoever knows the URL of an open provider may send
 * to it.
 */
export function unguessableName(random: RandomBytes): string {
  return `url-${random(10).toString('hex')}`
}

/** How a signing secret of Standard Webhooks begins. */
export const SECRET_PREFIX = 'whsec_'

/** A fresh secret, as senders take it: Lemon Squeezy takes 40 characters at most. */
export function makeSigningSecret(random: RandomBytes, scheme: string): string {
  if (schemeNamed(scheme)?.secret !== 'whsec') return random(24).toString('base64url')
  return SECRET_PREFIX + random(32).toString('base64')
}

/** The key in the text of a scheme's secret; undefined for text of another form. */
export function keyOf(name: string | null, secret: string): Key | undefined {
  const scheme = schemeNamed(name)
  if (scheme === undefined) return undefined
  if (scheme.secret === 'whsec') return signingKey(secret)
  if (scheme.secret === 'hex') return HEX.test(secret) ? Buffer.from(secret, 'hex') : undefined
  if (scheme.secret === 'credentials') {
    return CREDENTIALS.test(secret) ? Buffer.from(secret) : undefined
  }
  if (scheme.secret === 'public key') return publicKey(secret, scheme.algorithm === 'p256')
  return isSecretText(secret) ? Buffer.from(secret) : undefined
}

/** Whether a text can be a secret that its sender, or an operator, has chosen. */
export function isSecretText(text: string): boolean {
  return /^[^\p{Cc}]{8,256}$/u.test(text)
}

/** A key of P-256 as its sender shows it (SPKI), or one of Ed25519, 32 bytes. */
function publicKey(text: string, isP256: boolean): KeyObject | undefined {
  const bare = text.replace(/^whpk_/, '')
  const isHex = /^[0-9a-f]{64}$/i.test(bare)
  if (!isHex && !BASE64.test(bare)) return undefined
  const bytes = Buffer.from(bare, isHex ? 'hex' : 'base64')
  if (!isP256) {
    const jwk = { kty: 'OKP', crv: 'Ed25519', x: bytes.toString('base64url') }
    return bytes.length === 32 ? createPublicKey({ key: jwk, format: 'jwk' }) : undefined
  }
  try {
    const key = createPublicKey({ key: bytes, format: 'der', type: 'spki' })
    return key.asymmetricKeyDetails?.namedCurve === 'prime256v1' ? key : undefined
  } catch {
    // No key at all.
    return undefined
  }
}

/** Of Plaid's API. */
const CREDENTIALS = /^[\w-]{8,128}:[\w-]{8,128}$/

/** 16 to 64 bytes. */
const HEX = /^(?:[\da-f]{2}){16,64}$/i

const BASE64 = /^(?:[a-z\d+/]{4})*(?:[a-z\d+/]{2}==|[a-z\d+/]{3}=)?$/i

/** The key in a secret of Standard Webhooks, whose prefix may be missing. */
export function signingKey(secret: string): Buffer | undefined {
  const text = secret.startsWith(SECRET_PREFIX) ? secret.slice(SECRET_PREFIX.length) : secret
  // Checked first, because `Buffer.from(x, 'base64')` leaves out what it can't read.
  if (!BASE64.test(text)) return undefined
  const key = Buffer.from(text, 'base64')
  return key.length >= 24 && key.length <= 64 ? key : undefined
}
