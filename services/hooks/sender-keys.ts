import Type from 'typebox'
import type { SecretName, Sender } from '../../db/hooks/rows.ts'
import type { SecretBox } from '../../kernel/secret-box.ts'
import type { HmacKeys } from './hmac.ts'
import { isSignedProvider, type SigningSecrets } from './signing-secrets.ts'
import { signingKey } from './standard-webhooks.ts'

/** The keys of a generic provider that signs, decrypted. */
export interface SenderKeys {
  readonly current: Buffer
  /** The one before the last rotation; undefined without one, and when it can't be read. */
  readonly previous: Buffer | undefined
}

/** A stored secret, or why it can't be read. */
export type StoredSecret = { readonly text: string } | { readonly problem: string }

/** Decrypts the stored signing secret of a generic provider. */
export function openSecret(secrets: SigningSecrets, name: string, sealed: Buffer): StoredSecret {
  const box = secrets.box()
  return box === undefined ? { problem: 'GATEHOUSE_SECRET_KEY is not set' } : box.open(sealed, name)
}

/** A key, or why its secret can't be read. */
type StoredKey = { readonly key: Buffer } | { readonly problem: string }

/** What came of a sealed secret that was opened, and with which box. */
interface Opened {
  readonly sealed: Buffer
  readonly box: SecretBox | undefined
  readonly was: StoredKey
}

/** By provider and place: each row read anew has the same bytes until the secret is changed. */
const opened = new Map<string, Opened>()

function keyOf(
  secrets: SigningSecrets,
  name: string,
  sealed: Buffer | null,
  place: SecretName = 'current',
): StoredKey {
  if (sealed === null) return { problem: 'there is no secret' }
  const box = secrets.box()
  const at = `${place} ${name}`
  const before = opened.get(at)
  if (before !== undefined && before.box === box && before.sealed.equals(sealed)) return before.was
  const secret = openSecret(secrets, name, sealed)
  const key = 'text' in secret ? signingKey(secret.text) : undefined
  const was = key !== undefined ? { key } : 'text' in secret ? { problem: 'damaged' } : secret
  opened.set(at, { sealed, box, was })
  return was
}

/** The keys of a provider that signs; a problem when the present one can't be read. */
export function readKeys(
  secrets: SigningSecrets,
  { name, signing_secret, retired_signing_secret }: Sender,
): SenderKeys | { readonly problem: string } {
  const current = keyOf(secrets, name, signing_secret)
  if ('problem' in current) return current
  const previous = keyOf(secrets, name, retired_signing_secret, 'previous')
  return { current: current.key, previous: 'key' in previous ? previous.key : undefined }
}

/** hooks.md section 2, SecretStatus. */
export const SecretStatus = Type.Union([
  Type.Literal('configured'),
  Type.Literal('missing'),
  Type.Literal('none-by-design'),
])
export type SecretStatus = Type.Static<typeof SecretStatus>

/** Whether a provider's token or secret is there and can be used: for what is shown and what may deliver alike. */
export function secretStatus(
  sender: Pick<Sender, 'name' | 'trust_mode' | 'token_hash' | 'signing_secret'>,
  secrets: SigningSecrets,
): SecretStatus {
  const { name, trust_mode, token_hash, signing_secret } = sender
  if (trust_mode === 'open' || trust_mode === 'queue') return 'none-by-design'
  const there = isSignedProvider(name)
    ? secrets.of(name) !== undefined
    : trust_mode === 'token'
      ? token_hash !== null
      : 'key' in keyOf(secrets, name, signing_secret)
  return there ? 'configured' : 'missing'
}

/** A provider without its token or signing secret is disabled whatever the operator wants. */
export function mayDeliver(
  sender: Parameters<typeof secretStatus>[0] & Pick<Sender, 'enabled'>,
  secrets: SigningSecrets,
): boolean {
  return sender.enabled && secretStatus(sender, secrets) !== 'missing'
}

/** Whether the token or secret before the last rotation is still accepted at a time. */
export function acceptsPrevious({ retired_until }: Sender, at: Date): boolean {
  return retired_until !== null && at < retired_until
}

/** The keys that count for a delivery of a time. */
export function keysAt({ current, previous }: SenderKeys, sender: Sender, at: Date): HmacKeys {
  if (previous === undefined) return { accepted: [current], retired: [] }
  return acceptsPrevious(sender, at)
    ? { accepted: [current, previous], retired: [] }
    : { accepted: [current], retired: [previous] }
}
