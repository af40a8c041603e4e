import { createPublicKey, type KeyObject } from 'node:crypto'
import type { RandomBytes } from '../../../kernel/tokens.ts'
import { schemeNamed } from './schemes.ts'
import type { Key } from './signatures.ts'

// The secrets of generic providers as texts: their forms, fresh ones, and the keys in them.

/** A fresh token: 32 bytes as base64url. `random` is the source of bytes. */
export function makeToken(random: RandomBytes): string {
  return random(32).toString('base64url')
}

/** How a signing secret of Standard Webhooks begins. */
export const SECRET_PREFIX = 'whsec_'

const TEXT_FORM = '8 to 256 characters on one line'

/** The accepted form of a scheme's secret, in words. */
export function secretForm(scheme: string | null): string {
  const form = scheme === null ? undefined : schemeNamed(scheme)?.secret
  if (form === 'public key') return 'the public key of the sender, 64 hex digits'
  return form === 'base64' ? `"${SECRET_PREFIX}" and then 24 to 64 bytes as base64` : TEXT_FORM
}

/** A fresh secret of 32 bytes, as senders take it. */
export function makeSigningSecret(random: RandomBytes, scheme: string): string {
  if (schemeNamed(scheme)?.secret !== 'base64') return makeToken(random)
  return SECRET_PREFIX + random(32).toString('base64')
}

/** The key in the text of a scheme's secret; undefined for text of another form. */
export function keyOf(scheme: string | null, secret: string): Key | undefined {
  const found = scheme === null ? undefined : schemeNamed(scheme)
  if (found === undefined) return undefined
  if (found.secret === 'base64') return signingKey(secret)
  if (found.secret === 'public key') return publicKey(secret)
  return isSecretText(secret) ? Buffer.from(secret) : undefined
}

/** Whether a text can be a secret that its sender, or an operator, has chosen. */
export function isSecretText(text: string): boolean {
  return /^[^\p{Cc}]{8,256}$/u.test(text)
}

function publicKey(hex: string): KeyObject | undefined {
  if (!/^[0-9a-f]{64}$/i.test(hex)) return undefined
  const x = Buffer.from(hex, 'hex').toString('base64url')
  return createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })
}

const BASE64 = /^(?:[a-z\d+/]{4})*(?:[a-z\d+/]{2}==|[a-z\d+/]{3}=)?$/i

/** The key in a secret of Standard Webhooks, whose prefix may be missing. */
export function signingKey(secret: string): Buffer | undefined {
  const text = secret.startsWith(SECRET_PREFIX) ? secret.slice(SECRET_PREFIX.length) : secret
  // Checked first, because `Buffer.from(x, 'base64')` leaves out what it can't read.
  if (!BASE64.test(text)) return undefined
  const key = Buffer.from(text, 'base64')
  return key.length >= 24 && key.length <= 64 ? key : undefined
}
